// The network in WebGL2. Weights and activations are float textures, and every layer is one draw: the activations of a
// wide layer do not fit into the registers of a shader. In a texture of activations, x is a sample and y counts rows of
// samples within groups of four rows of the layer. There are four such textures: for the values of four samples, or for
// the value, two slopes and the curvature of one.

import { inputPhases, inputSlopes, outputs } from "./planes.js";
import { VERTEX, layerShader } from "./shaders.js";

const WIDTH = 256;
const TALLEST = 2048;
const MOST_ROWS = 32;

export function webglEngine(layers) {
  const gl = new OffscreenCanvas(1, 1).getContext("webgl2", { antialias: false, depth: false });
  if (gl === null || gl.getExtension("EXT_color_buffer_float") === null) return null;
  const groups = layers.map((layer) => Math.ceil(layer.rows / 4));
  const most = Math.max(...groups);
  const rows = Math.min(MOST_ROWS, Math.floor(TALLEST / most));
  if (rows < 1 || 4 * most + 1 > gl.getParameter(gl.MAX_TEXTURE_SIZE)) return null;
  const network = new GpuNetwork(gl, layers, groups);
  return { name: "WebGL2", capacity: WIDTH * rows, evaluate: (...task) => network.evaluate(...task) };
}

class GpuNetwork {
  constructor(gl, layers, groups) {
    Object.assign(this, { gl, layers, groups, programs: new Map(), targets: new Map() });
    this.weights = layers.map((layer, i) => (i === 0 ? null : this.weightTexture(layer, groups[i - 1], groups[i])));
    this.plane = makeTexture(gl, 5, groups[0]);
    this.buffer = gl.createBuffer();
    gl.bindVertexArray(gl.createVertexArray());
  }

  async evaluate(plane, quantity) {
    const { gl, layers, groups } = this;
    const samples = plane.columns * plane.rows;
    const derivatives = quantity !== "value";
    const rows = Math.ceil(samples / (derivatives ? WIDTH : 4 * WIDTH));
    this.uploadPlane(plane);
    layers.forEach((layer, i) => {
      const program = this.program(layer.activation, i === 0, derivatives);
      gl.useProgram(program);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.target(i % 2, rows).framebuffer);
      gl.viewport(0, 0, WIDTH, rows * groups[i]);
      setIntegers(gl, program, { rows });
      if (i === 0) this.bindPlane(program, plane);
      else this.bindLayer(program, i, rows);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    });
    const states = await this.read(rows, samples, derivatives);
    if (gl.isContextLost()) throw new Error("the WebGL2 context was lost");
    return outputs(states, samples, layers.at(-1).rows, quantity);
  }

  uploadPlane(plane) {
    const { gl, layers, groups } = this;
    const { start, across, down } = inputPhases(layers[0], plane);
    const slopes = [0, 1].map((axis) => (axis < plane.origin.length ? inputSlopes(layers[0], axis) : null));
    const texels = new Float32Array(groups[0] * 5 * 4);
    [start, across, down, ...slopes].forEach((numbers, k) => {
      numbers?.forEach((number, row) => (texels[(Math.floor(row / 4) * 5 + k) * 4 + (row % 4)] = number));
    });
    gl.bindTexture(gl.TEXTURE_2D, this.plane);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 5, groups[0], gl.RGBA, gl.FLOAT, texels);
  }

  bindPlane(program, { columns, rows }) {
    const { gl } = this;
    const middles = { middle: Math.floor(columns / 2), center: Math.floor(rows / 2) };
    setIntegers(gl, program, { plane: 0, width: WIDTH, columns, ...middles });
    bind(gl, 0, this.plane);
  }

  bindLayer(program, i, rows) {
    const { gl } = this;
    const units = { weights: 0, before0: 1, before1: 2, before2: 3, before3: 4 };
    setIntegers(gl, program, { inputs: this.groups[i - 1], ...units });
    bind(gl, 0, this.weights[i]);
    this.target((i - 1) % 2, rows).textures.forEach((texture, k) => bind(gl, 1 + k, texture));
  }

  weightTexture(layer, inputs, groups) {
    const columns = 4 * inputs + 1;
    const texels = new Float32Array(columns * groups * 4);
    const at = (row, column) => (Math.floor(row / 4) * columns + column) * 4 + (row % 4);
    for (let row = 0; row < layer.rows; row++) {
      for (let k = 0; k < layer.columns; k++) texels[at(row, k)] = layer.weight[row * layer.columns + k];
      texels[at(row, columns - 1)] = layer.bias[row];
    }
    return makeTexture(this.gl, columns, groups, texels);
  }

  // A framebuffer with four textures for so many rows of samples, or more.
  target(parity, rows) {
    const large = rows > MOST_ROWS / 4;
    const key = `${parity} ${large}`;
    if (!this.targets.has(key)) {
      const { gl } = this;
      const height = Math.max(...this.groups) * (large ? MOST_ROWS : MOST_ROWS / 4);
      const textures = Array.from({ length: 4 }, () => makeTexture(gl, WIDTH, Math.min(height, TALLEST)));
      const framebuffer = gl.createFramebuffer();
      gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
      const attachments = textures.map((texture, k) => {
        gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + k, gl.TEXTURE_2D, texture, 0);
        return gl.COLOR_ATTACHMENT0 + k;
      });
      gl.drawBuffers(attachments);
      this.targets.set(key, { framebuffer, textures });
    }
    return this.targets.get(key);
  }

  program(activation, first, derivatives) {
    const key = `${activation} ${first} ${derivatives}`;
    if (!this.programs.has(key)) {
      this.programs.set(key, makeProgram(this.gl, layerShader(activation, first, derivatives)));
    }
    return this.programs.get(key);
  }

  // The last layer: values, or each kind of state. Texture k has sample 4n + k in its texel n, or state k of sample n.
  async read(rows, samples, derivatives) {
    const channels = this.layers.at(-1).rows;
    const size = WIDTH * rows * this.groups.at(-1) * 4;
    const texels = await this.readTextures(rows, size);
    const states = Array.from({ length: derivatives ? 4 : 1 }, () => new Float32Array(samples * channels));
    for (let k = 0; k < 4; k++) {
      const [state, first, step] = derivatives ? [states[k], 0, 1] : [states[0], k, 4];
      for (let n = first, texel = 0; n < samples; n += step, texel++) {
        for (let c = 0; c < channels; c++) {
          state[n * channels + c] = texels[k * size + (Math.floor(c / 4) * WIDTH * rows + texel) * 4 + (c % 4)];
        }
      }
    }
    return states;
  }

  // Through a buffer, and only when the GPU is done: browsers warn of a page that makes it wait.
  async readTextures(rows, size) {
    const { gl, groups, layers } = this;
    const texels = new Float32Array(4 * size);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target((layers.length - 1) % 2, rows).framebuffer);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, this.buffer);
    gl.bufferData(gl.PIXEL_PACK_BUFFER, texels.byteLength, gl.STREAM_READ);
    for (let k = 0; k < 4; k++) {
      gl.readBuffer(gl.COLOR_ATTACHMENT0 + k);
      gl.readPixels(0, 0, WIDTH, rows * groups.at(-1), gl.RGBA, gl.FLOAT, k * size * 4);
    }
    await finished(gl);
    gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, texels);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    return texels;
  }
}

async function finished(gl) {
  const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl.flush();
  while (!gl.isContextLost() && gl.clientWaitSync(fence, 0, 0) === gl.TIMEOUT_EXPIRED) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  gl.deleteSync(fence);
}

function makeTexture(gl, width, height, texels = null) {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32F, width, height);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  if (texels) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, width, height, gl.RGBA, gl.FLOAT, texels);
  return texture;
}

function makeProgram(gl, fragment) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  return program;
}

function setIntegers(gl, program, numbers) {
  for (const [name, number] of Object.entries(numbers)) gl.uniform1i(gl.getUniformLocation(program, name), number);
}

function bind(gl, unit, texture) {
  gl.activeTexture(gl.TEXTURE0 + unit);
  gl.bindTexture(gl.TEXTURE_2D, texture);
}
