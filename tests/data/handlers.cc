// Functions for the tests of `perspex.ffi`, compiled against the headers that jaxlib brings along.
#include <cstdint>
#include <cmath>
#include <memory>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using F32 = ffi::Buffer<ffi::F32>;
using Out = ffi::ResultBuffer<ffi::F32>;

// Along the last axis, x / sqrt(mean(x^2) + eps).
static ffi::Error RmsNorm(float eps, F32 x, Out y) {
  auto dims = x.dimensions();
  if (dims.size() == 0) return ffi::Error::InvalidArgument("RmsNorm input must be an array");
  int64_t n = dims.back();
  for (int64_t start = 0; start < (int64_t)x.element_count(); start += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::pow(x.typed_data()[start + i], 2);
    float scale = 1.0f / std::sqrt(sum / float(n) + eps);
    for (int64_t i = 0; i < n; ++i) y->typed_data()[start + i] = x.typed_data()[start + i] * scale;
  }
  return ffi::Error::Success();
}

// What a call of two operands was given: their ranks, their leading sizes, and a sum of attributes.
static ffi::Error Shapes(int64_t whole, double real, bool flag, std::string_view text,
                         ffi::Span<const int64_t> list, ffi::Dictionary dict, F32 x, F32 y,
                         ffi::ResultBuffer<ffi::S32> ranks, Out sum) {
  auto lead = [](F32 b) { return b.dimensions().size() ? (int32_t)b.dimensions()[0] : -1; };
  int32_t found[] = {(int32_t)x.dimensions().size(), lead(x), (int32_t)y.dimensions().size(),
                     lead(y)};
  for (size_t i = 0; i < ranks->element_count(); ++i) ranks->typed_data()[i] = found[i % 4];
  float total = whole + real + flag + text.size();
  for (int64_t v : list) total += v;
  auto inner = dict.get<int32_t>("inner");
  if (inner.has_error()) return inner.error();
  for (size_t i = 0; i < sum->element_count(); ++i) sum->typed_data()[i] = total + *inner;
  return ffi::Error::Success();
}

// Adds one; counts its calls, and those whose result has the memory of the operand.
static int64_t calls = 0, in_place = 0;
static ffi::Error Counted(F32 x, Out y) {
  ++calls;
  in_place += x.typed_data() == y->typed_data();
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + 1;
  return ffi::Error::Success();
}
extern "C" int64_t CallsSoFar() { return calls; }
extern "C" int64_t CallsInPlace() { return in_place; }

// Copies memory as it lies, whatever the layouts say.
static ffi::Error Raw(F32 x, Out y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i];
  return ffi::Error::Success();
}

// Keeps a number from the stage that compiles to the one that runs.
struct Kept {
  static ffi::TypeId id;
  explicit Kept(float x) : value(x) {}
  float value;
};
ffi::TypeId Kept::id = {};
static XLA_FFI_TypeInfo kept_info = ffi::MakeTypeInfo<Kept>();
extern "C" void* KeptInfo() { return &kept_info; }
extern "C" void* KeptId() { return &Kept::id; }
static ffi::ErrorOr<std::unique_ptr<Kept>> Prepare(float start) {
  return std::make_unique<Kept>(start);
}
static ffi::Error Run(Kept* kept, Out y) {
  for (size_t i = 0; i < y->element_count(); ++i) y->typed_data()[i] = kept->value++;
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    RmsNormHandler, RmsNorm, ffi::Ffi::Bind().Attr<float>("eps").Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(ShapesHandler, Shapes,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("whole")
                                  .Attr<double>("real")
                                  .Attr<bool>("flag")
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("list")
                                  .Attr<ffi::Dictionary>("dict")
                                  .Arg<F32>()
                                  .Arg<F32>()
                                  .Ret<ffi::Buffer<ffi::S32>>()
                                  .Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountedHandler, Counted, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(RawHandler, Raw, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    PrepareHandler, Prepare, ffi::Ffi::BindInstantiate().Attr<float>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    RunHandler, Run, ffi::Ffi::Bind().Ctx<ffi::State<Kept>>().Ret<F32>());
