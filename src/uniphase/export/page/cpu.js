// The network in typed arrays, for browsers without WebGL2. It runs in a worker.

import { inputPhases, inputSlopes, outputs } from "./planes.js";

// Samples at a time: the state of a layer stays in the cache.
const BLOCK = 64;
const GELU_SCALE = Math.sqrt(2 / Math.PI);
const GELU_CUBE = 0.044715;

// Each activation with its first and second derivative. A sine takes turns, and is differentiated by radians.
const FUNCTIONS = {
  sine: (z, out) => {
    const radians = 2 * Math.PI * (z - Math.round(z));
    out[0] = Math.sin(radians);
    out[1] = Math.cos(radians);
    out[2] = -out[0];
  },
  tanh: (z, out) => {
    out[0] = Math.tanh(z);
    out[1] = 1 - out[0] * out[0];
    out[2] = -2 * out[0] * out[1];
  },
  silu: (z, out) => {
    const gate = 1 / (1 + Math.exp(-z));
    out[0] = z * gate;
    out[1] = gate * (1 + z * (1 - gate));
    out[2] = gate * (1 - gate) * (2 + z * (1 - 2 * gate));
  },
  gelu: (z, out) => {
    const gate = Math.tanh(GELU_SCALE * (z + GELU_CUBE * z ** 3));
    const slope = GELU_SCALE * (1 + 3 * GELU_CUBE * z * z);
    const rest = 1 - gate * gate;
    out[0] = (z * (1 + gate)) / 2;
    out[1] = (1 + gate + z * rest * slope) / 2;
    out[2] = rest * slope + z * rest * (3 * GELU_SCALE * GELU_CUBE * z - gate * slope * slope);
  },
  relu: (z, out) => {
    out[0] = Math.max(z, 0);
    out[1] = z > 0 ? 1 : 0;
    out[2] = 0;
  },
  linear: (z, out) => {
    out[0] = z;
    out[1] = 1;
    out[2] = 0;
  },
};

export function typedArrayEngine(layers) {
  const evaluate = (plane, quantity) => {
    const samples = plane.columns * plane.rows;
    const kinds = quantity === "value" ? 1 : 4;
    const channels = layers.at(-1).rows;
    const states = Array.from({ length: kinds }, () => new Float32Array(samples * channels));
    const phases = inputPhases(layers[0], plane);
    for (let first = 0; first < samples; first += BLOCK) {
      const count = Math.min(BLOCK, samples - first);
      let state = inputState(layers[0], plane, phases, first, count, kinds);
      for (const layer of layers.slice(1)) state = nextState(layer, state, count, kinds);
      states.forEach((all, kind) => {
        const size = count * channels;
        all.set(state.subarray(kind * size, (kind + 1) * size), first * channels);
      });
    }
    return outputs(states, samples, channels, quantity);
  };
  return { name: "typed arrays", capacity: 1024, evaluate };
}

// A state has a row of numbers for each sample: first all values, then all slopes along each axis, then all curvatures.
function inputState(layer, plane, { middle, center, start, across, down }, first, count, kinds) {
  const { rows } = layer;
  const z = new Float64Array(kinds * count * rows);
  for (let n = 0; n < count; n++) {
    const i = ((first + n) % plane.columns) - middle;
    const j = Math.floor((first + n) / plane.columns) - center;
    for (let row = 0; row < rows; row++) z[n * rows + row] = start[row] + i * across[row] + j * down[row];
  }
  for (let axis = 0; kinds > 1 && axis < 2; axis++) {
    const slopes = inputSlopes(layer, axis);
    for (let n = 0; n < count; n++) z.set(slopes, ((1 + axis) * count + n) * rows);
  }
  return activate(layer, z, count, kinds);
}

function nextState(layer, h, count, kinds) {
  const z = product(layer, h, kinds * count);
  const { rows, bias } = layer;
  for (let k = 0; k < count * rows; k++) z[k] += bias[k % rows];
  const unit = layer.activation === "sine" ? 2 * Math.PI : 1;
  for (let k = count * rows; k < z.length; k++) z[k] *= unit;
  return activate(layer, z, count, kinds);
}

// f(z), f'(z) s along each axis, and f'(z) q + f''(z) Σ s².
function activate(layer, z, count, kinds) {
  const activation = FUNCTIONS[layer.activation];
  const size = count * layer.rows;
  const f = new Float64Array(3);
  for (let k = 0; k < size; k++) {
    activation(z[k], f);
    z[k] = f[0];
    if (kinds === 1) continue;
    const x = z[k + size];
    const y = z[k + 2 * size];
    z[k + size] = f[1] * x;
    z[k + 2 * size] = f[1] * y;
    z[k + 3 * size] = f[1] * z[k + 3 * size] + f[2] * (x * x + y * y);
  }
  return z;
}

// Two samples by four rows at a time, so that every number that is loaded is used more than once.
function product({ rows, columns, weight }, h, count) {
  const z = new Float64Array(count * rows);
  const dot = (n, row) => {
    let sum = 0;
    for (let k = 0; k < columns; k++) sum += weight[row * columns + k] * h[n * columns + k];
    z[n * rows + row] = sum;
  };
  for (let n = 0; n < count; n += 2) {
    for (let row = 0; row < rows; row += 4) {
      if (n + 2 <= count && row + 4 <= rows) {
        twoByFour(weight, h, z, n, row, columns, rows);
        continue;
      }
      for (let m = n; m < Math.min(n + 2, count); m++) {
        for (let r = row; r < Math.min(row + 4, rows); r++) dot(m, r);
      }
    }
  }
  return z;
}

function twoByFour(weight, h, z, n, row, columns, rows) {
  let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  const first = n * columns;
  const second = first + columns;
  const w0 = row * columns;
  const w1 = w0 + columns;
  const w2 = w1 + columns;
  const w3 = w2 + columns;
  for (let k = 0; k < columns; k++) {
    const a = h[first + k];
    const b = h[second + k];
    a0 += weight[w0 + k] * a;
    a1 += weight[w1 + k] * a;
    a2 += weight[w2 + k] * a;
    a3 += weight[w3 + k] * a;
    b0 += weight[w0 + k] * b;
    b1 += weight[w1 + k] * b;
    b2 += weight[w2 + k] * b;
    b3 += weight[w3 + k] * b;
  }
  const at = n * rows + row;
  z[at] = a0;
  z[at + 1] = a1;
  z[at + 2] = a2;
  z[at + 3] = a3;
  z[at + rows] = b0;
  z[at + rows + 1] = b1;
  z[at + rows + 2] = b2;
  z[at + rows + 3] = b3;
}
