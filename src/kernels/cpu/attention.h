// Attention over a paged KV cache (Vaswani et al. 2017; grouped heads, Ainslie et al. 2023): writes the batch's keys
// and values, then attends.
//
// Contract, for one query at position p that sees positions first … last (causal: p - window + 1 … p; otherwise
// p - window + 1 … p + window - 1, to the batch's last): absolute positions are cut into partitions of 256, each of
// which gives
//   score[j] = (one chain of fused multiply-adds over headDim) · scale, then cap · tanh(score / cap) if softcap is set,
//   m = the largest score, e[j] = exp(score[j] - m), l = Σ e (lane j mod 16, rising, halves folded),
//   o[d] = one chain of fused multiply-adds e[j] · v[j][d] over j, rising;
// partitions are merged in rising order: M' = max(M, m), L = fma(L, exp(M - M'), l · exp(m - M')), O likewise; the
// result is O / L. So it is the same for any chunking, batch, page size and number of threads.
//
// A tile's lines are queries that share a key/value head: heads of a group, rows of a segment. Many rows walk the
// partitions and merge as they go; few rows (decoding) hand each partition to a thread and merge afterwards.
#pragma once

#include "kernels/cpu/kv_page.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/tile.h"

namespace candor::cpu::CANDOR_ISA::attention {

constexpr std::uint32_t kPartition = 256;
constexpr std::uint32_t kLines = 24;      ///< queries computed together
constexpr std::uint32_t kSplitRows = 16;  ///< batches up to this many rows hand out partitions

struct Settings {
  std::uint32_t heads, kv_heads, head_dim;
  float scale;
  std::uint32_t window;
  float softcap;
  bool causal;

  explicit Settings(const Constants& c)
      : heads(integer(c, 0)),
        kv_heads(integer(c, 1)),
        head_dim(integer(c, 2)),
        scale(real(c, 3)),
        window(integer(c, 4)),
        softcap(real(c, 5)),
        causal(integer(c, 6) != 0) {}

  [[nodiscard]] std::uint32_t group() const { return heads / kv_heads; }
  [[nodiscard]] std::uint32_t padded_dim() const { return (head_dim + kLanes - 1) / kLanes * kLanes; }
};

/// Positions begin … end - 1.
struct Range {
  std::uint32_t begin, end;

  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] Range clip(Range to) const {
    return {begin > to.begin ? begin : to.begin, end < to.end ? end : to.end};
  }
};

inline Range visible(const Settings& s, const Segment& segment, std::uint32_t row_in_segment) {
  const std::uint32_t position = segment.first_position + row_in_segment;
  const std::uint32_t begin = s.window != 0 && position + 1 > s.window ? position + 1 - s.window : 0;
  if (s.causal) return {begin, position + 1};
  const std::uint32_t all = segment.first_position + segment.rows;
  return {begin, s.window != 0 && all - position > s.window ? position + s.window : all};
}

/// The part of a softmax that one partition contributes: O has padded_dim floats. l is 0 where nothing was seen, and at
/// least 1 otherwise.
struct Partial {
  float* m;
  float* l;
  float* o;
};

inline void merge(const Settings& s, Partial into, Partial from) {
  if (*from.l == 0) return;
  if (*into.l == 0) {
    *into.m = *from.m;
    *into.l = *from.l;
    __builtin_memcpy(into.o, from.o, s.padded_dim() * sizeof(float));
    return;
  }
  const F32x16 m_into = broadcast(*into.m);
  const F32x16 m_from = broadcast(*from.m);
  const F32x16 most = max(m_into, m_from);
  const F32x16 keep = exp(m_into - most);
  const F32x16 add = exp(m_from - most);
  alignas(64) float lanes[kLanes];
  store(lanes, most);
  *into.m = lanes[0];
  store(lanes, fma(broadcast(*into.l), keep, broadcast(*from.l) * add));
  *into.l = lanes[0];
  for (std::uint32_t d = 0; d < s.padded_dim(); d += kLanes)
    store(into.o + d, fma(load(into.o + d), keep, load(from.o + d) * add));
}

inline void write_result(const Settings& s, Partial line, float* out) {
  const F32x16 sum = broadcast(*line.l);
  for_each_vector(s.head_dim, [&](std::uint32_t d, auto n)
                                  CANDOR_INLINE_LAMBDA { store_first(out + d, load(line.o + d) / sum, n); });
}

/// One thread's scratch memory.
struct Workspace {
  float* queries;  ///< [kLines][head_dim]
  float* scores;   ///< [kLines][kPartition]
  float* keys;     ///< [head_dim][16]
  float* values;   ///< [kPartition][16]
  float* part_o;   ///< [kLines][padded_dim], of one partition
  float* line_o;   ///< [kLines][padded_dim], merged
  float* part_m;   ///< [kLines] each
  float* part_l;
  float* line_m;
  float* line_l;
  Range* seen;  ///< [kLines], of one partition, counted from its start

  static std::uint64_t floats(const Settings& s) {
    return std::uint64_t{kLines} * (s.padded_dim() * 3 + kPartition) + kLanes * (s.padded_dim() + kPartition) +
           (4 + sizeof(Range) / sizeof(float)) * kLines;
  }
  Workspace(const Settings& s, float* p) {
    const auto take = [&](std::uint64_t count) {
      float* taken = p;
      p += count;
      return taken;
    };
    queries = take(std::uint64_t{kLines} * s.padded_dim());
    scores = take(std::uint64_t{kLines} * kPartition);
    keys = take(std::uint64_t{kLanes} * s.padded_dim());
    values = take(std::uint64_t{kLanes} * kPartition);
    part_o = take(std::uint64_t{kLines} * s.padded_dim());
    line_o = take(std::uint64_t{kLines} * s.padded_dim());
    part_m = take(kLines);
    part_l = take(kLines);
    line_m = take(kLines);
    line_l = take(kLines);
    seen = reinterpret_cast<Range*>(take(kLines * sizeof(Range) / sizeof(float)));
  }

  [[nodiscard]] Partial part(const Settings& s, std::uint32_t line) const {
    return {part_m + line, part_l + line, part_o + std::size_t{line} * s.padded_dim()};
  }
  [[nodiscard]] Partial merged(const Settings& s, std::uint32_t line) const {
    return {line_m + line, line_l + line, line_o + std::size_t{line} * s.padded_dim()};
  }
};

/// A chunk of work: up to kLines lines of one segment and key/value head, numbered row by row.
struct Task {
  const Segment* segment;
  std::uint32_t kv_head;
  std::uint32_t first_line;
  std::uint32_t lines;
  std::uint32_t partition;  ///< when partitions are handed out

  [[nodiscard]] std::uint32_t row_in_segment(const Settings& s, std::uint32_t line) const {
    return (first_line + line) / s.group();
  }
  [[nodiscard]] std::uint32_t head(const Settings& s, std::uint32_t line) const {
    return kv_head * s.group() + (first_line + line) % s.group();
  }
};

template <typename Kv>
class Attention {
 public:
  explicit Attention(const KernelArguments& arguments)
      : arguments_(arguments),
        s_(arguments.constants),
        layout_{s_.kv_heads, s_.head_dim, arguments.kv->page_positions, Kv::kElementBytes},
        scratch_(reinterpret_cast<float*>(arguments.scratch.data())) {}

  void run() {
    write_keys_and_values();
    if (input(arguments_, 0).rows <= kSplitRows) {
      attend_split();
    } else {
      attend_whole();
    }
  }

 private:
  [[nodiscard]] const Segment* segments() const { return arguments_.batch->segments.data(); }
  [[nodiscard]] std::uint32_t segment_count() const {
    return static_cast<std::uint32_t>(arguments_.batch->segments.size());
  }
  [[nodiscard]] KvView view(const Segment& segment) const {
    return {layout_, arguments_.kv->data, arguments_.kv->page_bytes, segment.kv_pages};
  }
  [[nodiscard]] Workspace workspace(unsigned worker) const { return {s_, scratch_ + worker * Workspace::floats(s_)}; }

  void write_keys_and_values() {
    const Matrix& k = input(arguments_, 1);
    const Matrix& v = input(arguments_, 2);
    for (std::uint32_t i = 0; i < segment_count(); ++i) {
      const Segment& segment = segments()[i];
      const KvView kv = view(segment);
      for_rows(*arguments_.pool, segment.rows, 2 * k.cols, [&](std::uint32_t r, unsigned) {
        for (std::uint32_t head = 0; head < s_.kv_heads; ++head)
          Kv::write(kv, head, segment.first_position + r,
                    row<const float>(k, segment.first_row + r) + head * s_.head_dim,
                    row<const float>(v, segment.first_row + r) + head * s_.head_dim);
      });
    }
  }

  // ---- who computes what

  [[nodiscard]] std::uint32_t line_blocks(const Segment& segment) const {
    return (segment.rows * s_.group() + kLines - 1) / kLines;
  }
  /// Partitions that some row of the segment sees.
  [[nodiscard]] Range partitions(const Segment& segment) const {
    const std::uint32_t last = visible(s_, segment, segment.rows - 1).end;
    return {visible(s_, segment, 0).begin / kPartition, (last + kPartition - 1) / kPartition};
  }
  [[nodiscard]] std::uint32_t task_count(const Segment& segment, bool split) const {
    const Range parts = partitions(segment);
    return s_.kv_heads * line_blocks(segment) * (split ? parts.end - parts.begin : 1);
  }
  [[nodiscard]] std::uint32_t all_tasks(bool split) const {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < segment_count(); ++i) count += task_count(segments()[i], split);
    return count;
  }
  [[nodiscard]] Task task(std::uint32_t index, bool split) const {
    const Segment* segment = segments();
    for (; index >= task_count(*segment, split); ++segment) index -= task_count(*segment, split);
    Task task{segment, 0, 0, 0, 0};
    if (split) {
      const Range parts = partitions(*segment);
      task.partition = parts.begin + index % (parts.end - parts.begin);
      index /= parts.end - parts.begin;
    } else {
      index = task_count(*segment, split) - 1 - index;  // the longest first: later rows see more
    }
    task.kv_head = index % s_.kv_heads;
    task.first_line = index / s_.kv_heads * kLines;
    const std::uint32_t left = segment->rows * s_.group() - task.first_line;
    task.lines = left < kLines ? left : kLines;
    return task;
  }

  void attend_whole() {
    arguments_.pool->parallel_for(all_tasks(false), [&](std::uint32_t index, unsigned worker) {
      const Task t = task(index, false);
      const Workspace w = workspace(worker);
      copy_queries(t, w);
      for (std::uint32_t line = 0; line < t.lines; ++line) w.line_l[line] = 0;
      const Range parts{visible(s_, *t.segment, t.row_in_segment(s_, 0)).begin / kPartition,
                        partitions(*t.segment).end};
      for (std::uint32_t partition = parts.begin; partition < parts.end; ++partition) {
        attend_partition(t, partition, w);
        for (std::uint32_t line = 0; line < t.lines; ++line) merge(s_, w.merged(s_, line), w.part(s_, line));
      }
      for (std::uint32_t line = 0; line < t.lines; ++line) write_result(s_, w.merged(s_, line), output(t, line));
    });
  }

  void attend_split() {
    const std::uint64_t threads = arguments_.pool->size();
    float* partials = scratch_ + threads * Workspace::floats(s_);
    std::uint32_t most_parts = 0;
    for (std::uint32_t i = 0; i < segment_count(); ++i) {
      const Range parts = partitions(segments()[i]);
      most_parts = parts.end - parts.begin > most_parts ? parts.end - parts.begin : most_parts;
    }
    const auto partial = [&](std::uint32_t r, std::uint32_t head, std::uint32_t part) {
      float* p = partials + ((std::uint64_t{r} * s_.heads + head) * most_parts + part) * partial_floats(s_);
      return Partial{p, p + 1, p + kLanes};
    };
    arguments_.pool->parallel_for(all_tasks(true), [&](std::uint32_t index, unsigned worker) {
      const Task t = task(index, true);
      const Workspace w = workspace(worker);
      copy_queries(t, w);
      attend_partition(t, t.partition, w);
      for (std::uint32_t line = 0; line < t.lines; ++line) {
        const Partial to = partial(t.segment->first_row + t.row_in_segment(s_, line), t.head(s_, line),
                                   t.partition - partitions(*t.segment).begin);
        *to.l = 0;
        merge(s_, to, w.part(s_, line));
      }
    });
    for (std::uint32_t i = 0; i < segment_count(); ++i) {
      const Segment& segment = segments()[i];
      const Range parts = partitions(segment);
      const std::uint32_t lines = segment.rows * s_.heads;
      for_rows(*arguments_.pool, lines, (parts.end - parts.begin) * s_.padded_dim(), [&](std::uint32_t n, unsigned) {
        const std::uint32_t r = segment.first_row + n / s_.heads;
        const Partial first = partial(r, n % s_.heads, 0);
        for (std::uint32_t part = 1; part < parts.end - parts.begin; ++part)
          merge(s_, first, partial(r, n % s_.heads, part));
        write_result(s_, first, row<float>(arguments_.dst, r) + n % s_.heads * s_.head_dim);
      });
    }
  }

  [[nodiscard]] float* output(const Task& t, std::uint32_t line) const {
    const std::uint32_t r = t.segment->first_row + t.row_in_segment(s_, line);
    return row<float>(arguments_.dst, r) + t.head(s_, line) * s_.head_dim;
  }

  void copy_queries(const Task& t, const Workspace& w) const {
    for (std::uint32_t line = 0; line < t.lines; ++line) {
      const std::uint32_t r = t.segment->first_row + t.row_in_segment(s_, line);
      __builtin_memcpy(w.queries + std::size_t{line} * s_.head_dim,
                       row<const float>(input(arguments_, 0), r) + t.head(s_, line) * s_.head_dim,
                       s_.head_dim * sizeof(float));
    }
  }

  // ---- one partition

  void attend_partition(const Task& t, std::uint32_t index, const Workspace& w) const {
    const Range partition{index * kPartition, (index + 1) * kPartition};
    // Lines are in order of position, so the first sees the earliest and the last the latest.
    const Range all = Range{visible(s_, *t.segment, t.row_in_segment(s_, 0)).begin,
                            visible(s_, *t.segment, t.row_in_segment(s_, t.lines - 1)).end}
                          .clip(partition);
    for (std::uint32_t line = 0; line < t.lines; ++line) w.part_l[line] = 0;
    if (all.empty()) return;
    const KvView kv = view(*t.segment);
    for (std::uint32_t position = all.begin / kKeyBlock * kKeyBlock; position < all.end; position += kKeyBlock) {
      const float* keys = Kv::read_keys(kv, t.kv_head, position, w.keys);
      multiply_lines(0, t.lines, w.scores + (position - partition.begin), kPartition, true, w.queries, s_.head_dim,
                     keys, s_.head_dim);
    }
    for (std::uint32_t line = 0; line < t.lines; ++line) {
      const Range range = visible(s_, *t.segment, t.row_in_segment(s_, line)).clip(partition);
      w.seen[line] = range.empty() ? Range{0, 0} : Range{range.begin - partition.begin, range.end - partition.begin};
      if (!range.empty()) softmax(w, line, w.seen[line]);
    }
    for (std::uint32_t panel = 0; panel < layout_.value_panels(); ++panel) {
      const float* values = Kv::read_values(kv, t.kv_head, panel, all.begin, all.end, w.values);
      weigh_values(t.lines, all.begin - partition.begin, panel, values, w);
    }
  }

  /// Lines of a tile: of as few tiles as can be, all about as high, because a low one waits for its sums.
  static std::uint32_t tile_lines(std::uint32_t lines) {
    const std::uint32_t tiles = (lines + kTileRows - 1) / kTileRows;
    return (lines + tiles - 1) / tiles;
  }

  /// c[line][0 … 15] += x[line] · panel for lines first … last - 1.
  static void multiply_lines(std::uint32_t first, std::uint32_t last, float* c, std::size_t c_stride, bool from_zero,
                             const float* x, std::size_t x_stride, const float* panel, std::uint32_t depth) {
    for (std::uint32_t line = first; line < last;) {
      const std::uint32_t most = tile_lines(last - line);
      with_constant<kTileRows>(static_cast<int>(most), [&](auto rows) {
        multiply_tile<rows>(c + line * c_stride, c_stride, from_zero, x + line * x_stride, x_stride, panel, depth);
      });
      line += most;
    }
  }

  /// Scores to exponentials, of positions `range` counted from the partition's start.
  void softmax(const Workspace& w, std::uint32_t line, Range range) const {
    float* scores = w.scores + std::size_t{line} * kPartition;
    const F32x16 lowest = broadcast(-__builtin_inff());
    const auto for_blocks = [&](const auto& f) CANDOR_INLINE_LAMBDA {
      for (std::uint32_t i = range.begin / kLanes * kLanes; i < range.end; i += kLanes)
        f(scores + i,
          lanes_between(static_cast<int>(range.begin) - static_cast<int>(i), static_cast<int>(range.end - i)));
    };
    F32x16 most = lowest;
    for_blocks([&](float* p, Mask16 lanes) CANDOR_INLINE_LAMBDA {
      F32x16 score = load(p) * broadcast(s_.scale);
      if (s_.softcap != 0) score = capped(score, broadcast(s_.softcap));
      score = select(lanes, score, lowest);
      most = max(most, score);
      store(p, score);
    });
    const float m = reduce_max(most);
    F32x16 sum = broadcast(0.0f);
    for_blocks([&](float* p, Mask16 lanes) CANDOR_INLINE_LAMBDA {
      const F32x16 e = select(lanes, exp(load(p) - broadcast(m)), broadcast(0.0f));
      sum = sum + e;
      store(p, e);
    });
    w.part_m[line] = m;
    w.part_l[line] = reduce_add(sum);
  }

  /// Sixteen columns of O for every line; `values` start at position `origin` of the partition. Tiles go over the
  /// positions that all their lines see; what only some see before and after is added line by line, so that each line's
  /// chain runs over exactly what it sees.
  void weigh_values(std::uint32_t lines, std::uint32_t origin, std::uint32_t panel, const float* values,
                    const Workspace& w) const {
    const std::size_t stride = s_.padded_dim();
    float* o = w.part_o + std::size_t{panel} * kLanes;
    const auto add = [&](std::uint32_t first, std::uint32_t last, Range range, bool from_zero) {
      if (range.empty()) return;
      multiply_lines(first, last, o, stride, from_zero, w.scores + range.begin, kPartition,
                     values + std::size_t{range.begin - origin} * kLanes, range.end - range.begin);
    };
    const std::uint32_t most = tile_lines(lines);
    for (std::uint32_t first = 0; first < lines; first += most) {
      const std::uint32_t last = lines - first < most ? lines : first + most;
      Range common{0, kPartition};
      std::uint32_t earliest = kPartition;
      for (std::uint32_t line = first; line < last; ++line) {
        common = common.clip(w.seen[line]);
        earliest = w.seen[line].begin < earliest ? w.seen[line].begin : earliest;
      }
      if (common.empty()) {
        for (std::uint32_t line = first; line < last; ++line) add(line, line + 1, w.seen[line], true);
      } else if (earliest == common.begin) {
        add(first, last, common, true);
      } else {
        for (std::uint32_t line = first; line < last; ++line) {
          store(o + line * stride, broadcast(0.0f));
          add(line, line + 1, {w.seen[line].begin, common.begin}, false);
        }
        add(first, last, common, false);
      }
      if (common.empty()) continue;
      for (std::uint32_t line = first; line < last; ++line) add(line, line + 1, {common.end, w.seen[line].end}, false);
    }
  }

 public:
  static constexpr std::uint64_t partial_floats(const Settings& s) { return kLanes + s.padded_dim(); }

 private:
  const KernelArguments& arguments_;
  Settings s_;
  KvLayout layout_;
  float* scratch_;
};

/// Scratch memory and the bytes of a page; attend() is the kernel. The constants are those of operation attention.
inline std::uint64_t scratch(const KernelShapes& shapes, const Constants& constants) {
  const Settings s(constants);
  const std::uint64_t split_rows = shapes.rows < kSplitRows ? shapes.rows : kSplitRows;
  const std::uint64_t parts = shapes.context / kPartition + 2;
  return (shapes.threads * Workspace::floats(s) +
          split_rows * s.heads * parts * Attention<PlainKv<F32Element>>::partial_floats(s)) *
         sizeof(float);
}

inline std::uint64_t page_bytes(std::uint32_t positions, Encoding encoding, const Constants& constants) {
  const Settings s(constants);
  const std::uint32_t element_bytes = encoding == Encoding::q8_0 ? 1 : encoding == Encoding::f16 ? 2 : 4;
  return KvLayout{s.kv_heads, s.head_dim, positions, element_bytes}.page_bytes();
}

// Compiled in attention.cpp.
extern template class Attention<PlainKv<F32Element>>;
extern template class Attention<PlainKv<F16Element>>;
extern template class Attention<Q8Kv>;

inline void attend(const KernelArguments& arguments) {
  if (arguments.kv->encoding == Encoding::q8_0) {
    Attention<Q8Kv>(arguments).run();
  } else if (arguments.kv->encoding == Encoding::f16) {
    Attention<PlainKv<F16Element>>(arguments).run();
  } else {
    Attention<PlainKv<F32Element>>(arguments).run();
  }
}

}  // namespace candor::cpu::CANDOR_ISA::attention
