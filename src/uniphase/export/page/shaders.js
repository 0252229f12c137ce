// Shaders for one layer of the network. A fragment computes four rows of the layer: the values of four samples, or the
// value, two slopes and the curvature of one.

export const VERTEX = `#version 300 es
void main() {
  gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}`;

// f, f' and f'' of four numbers. The sine of turns is a polynomial on half of one: that of a driver may be coarser.
const FUNCTIONS = {
  sine: `
    vec4 wave(vec4 turns) {
      vec4 flips = round(2.0 * turns);
      vec4 r = 6.283185307179586 * (turns - 0.5 * flips);
      vec4 s = r * r;
      vec4 q = ((2.5999031e-6 * s - 1.9806547e-4) * s + 8.3330164e-3) * s - 0.16666657;
      return (1.0 - 2.0 * mod(flips, 2.0)) * (r + r * s * q);
    }
    void activate(vec4 z, out vec4 f, out vec4 g, out vec4 h) {
      vec4 turns = z - round(z);
      f = wave(turns);
      g = wave(turns + 0.25);
      h = -f;
    }`,
  tanh: `
    void activate(vec4 z, out vec4 f, out vec4 g, out vec4 h) {
      f = tanh(clamp(z, -15.0, 15.0));
      g = 1.0 - f * f;
      h = -2.0 * f * g;
    }`,
  silu: `
    void activate(vec4 z, out vec4 f, out vec4 g, out vec4 h) {
      vec4 gate = 1.0 / (1.0 + exp(-clamp(z, -80.0, 80.0)));
      f = z * gate;
      g = gate * (1.0 + z * (1.0 - gate));
      h = gate * (1.0 - gate) * (2.0 + z * (1.0 - 2.0 * gate));
    }`,
  gelu: `
    void activate(vec4 z, out vec4 f, out vec4 g, out vec4 h) {
      const float scale = 0.7978845608, cube = 0.044715;
      vec4 gate = tanh(clamp(scale * (z + cube * z * z * z), -15.0, 15.0));
      vec4 slope = scale * (1.0 + 3.0 * cube * z * z);
      vec4 rest = 1.0 - gate * gate;
      f = 0.5 * z * (1.0 + gate);
      g = 0.5 * (1.0 + gate + z * rest * slope);
      h = rest * slope + z * rest * (3.0 * scale * cube * z - gate * slope * slope);
    }`,
  relu: `
    void activate(vec4 z, out vec4 f, out vec4 g, out vec4 h) {
      f = max(z, 0.0);
      g = step(0.0, z);
      h = vec4(0.0);
    }`,
  linear: `
    void activate(vec4 z, out vec4 f, out vec4 g, out vec4 h) {
      f = z;
      g = vec4(1.0);
      h = vec4(0.0);
    }`,
};

// The input layer takes its four rows along the plane from a texture: start, across, down, and two slopes.
const INPUT = `
  uniform sampler2D plane;
  uniform int width, columns, middle, center;
  vec4 along(int k, int group) { return texelFetch(plane, ivec2(k, group), 0); }
  vec4 phase(int n, int group) {
    vec4 across = float(n % columns - middle) * along(1, group);
    vec4 down = float(n / columns - center) * along(2, group);
    #ifdef TURNS
    across -= round(across);
    down -= round(down);
    #endif
    return along(0, group) + across + down;
  }
  void preactivations(ivec2 at, int group, int row, out vec4 z[4]) {
    int n = row * width + at.x;
    #ifdef DERIVATIVES
    z[0] = phase(n, group);
    z[1] = along(3, group);
    z[2] = along(4, group);
    z[3] = vec4(0.0);
    #else
    for (int m = 0; m < 4; m++) z[m] = phase(4 * n + m, group);
    #endif
  }`;

// A texel (k, group) of the weights has column k of four rows, and the last column is the bias. Weights that are read
// serve four vectors: the values of four samples, or the value and the derivatives of one.
const LATER = `
  uniform sampler2D weights, before0, before1, before2, before3;
  uniform int inputs;
  void preactivations(ivec2 at, int group, int row, out vec4 z[4]) {
    for (int m = 0; m < 4; m++) z[m] = vec4(0.0);
    for (int k = 0; k < inputs; k++) {
      ivec2 from = ivec2(at.x, k * rows + row);
      mat4 w;
      for (int c = 0; c < 4; c++) w[c] = texelFetch(weights, ivec2(4 * k + c, group), 0);
      z[0] += w * texelFetch(before0, from, 0);
      z[1] += w * texelFetch(before1, from, 0);
      z[2] += w * texelFetch(before2, from, 0);
      z[3] += w * texelFetch(before3, from, 0);
    }
    vec4 bias = texelFetch(weights, ivec2(4 * inputs, group), 0);
    #ifdef DERIVATIVES
    z[0] += bias;
    #ifdef TURNS
    for (int m = 1; m < 4; m++) z[m] *= 6.283185307179586;
    #endif
    #else
    for (int m = 0; m < 4; m++) z[m] += bias;
    #endif
  }`;

export function layerShader(activation, first, derivatives) {
  return `#version 300 es
  precision highp float;
  precision highp int;
  precision highp sampler2D;
  ${derivatives ? "#define DERIVATIVES" : ""}
  ${activation === "sine" ? "#define TURNS" : ""}
  uniform int rows;
  layout(location = 0) out vec4 out0;
  layout(location = 1) out vec4 out1;
  layout(location = 2) out vec4 out2;
  layout(location = 3) out vec4 out3;
  ${FUNCTIONS[activation]}
  ${first ? INPUT : LATER}
  void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    int group = at.y / rows;
    vec4 z[4];
    preactivations(at, group, at.y - group * rows, z);
    vec4 g, h;
    #ifdef DERIVATIVES
    activate(z[0], out0, g, h);
    out1 = g * z[1];
    out2 = g * z[2];
    out3 = g * z[3] + h * (z[1] * z[1] + z[2] * z[2]);
    #else
    activate(z[0], out0, g, h);
    activate(z[1], out1, g, h);
    activate(z[2], out2, g, h);
    activate(z[3], out3, g, h);
    #endif
  }`;
}
