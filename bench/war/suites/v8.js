// v8.js - drives the eight programs of the V8 suite: fixed work instead of fixed time.
// SPDX-License-Identifier: MIT
//
// Stands behind base.js and the eight files as npm's benchmark-octane has them. Each program proves
// its own result and throws if it is wrong; the checksum is where the common random numbers stand.
var ITERATIONS = {
  Richards: 4, DeltaBlue: 4, Encrypt: 4, Decrypt: 1, RayTrace: 3, Earley: 10, Boyer: 1, RegExp: 1,
  Splay: 1200, NavierStokes: 2
};

for (var s = 0; s < BenchmarkSuite.suites.length; s++) {
  BenchmarkSuite.ResetRNG();
  var benchmarks = BenchmarkSuite.suites[s].benchmarks;
  for (var b = 0; b < benchmarks.length; b++) {
    var benchmark = benchmarks[b];
    var count = scaled(ITERATIONS[benchmark.name]);
    benchmark.Setup();
    for (var i = 0; i < count; i++) benchmark.run();
    benchmark.TearDown();
    say(benchmark.name + ' ' + count + ' ' + Math.floor(Math.random() * 0x10000000));
  }
}
