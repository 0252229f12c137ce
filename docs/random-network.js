// The random network of the page on theory: f(x) = w · sin(W_L … sin(ω₀ v x + b₀) … + b_L), drawn as a curve, with the
// mean squared slope of every hidden layer below it.
(() => {
  const root = document.getElementById("random-network");
  const [curve, bars] = root.querySelectorAll("canvas");
  const form = root.querySelector("form");
  const POSITIONS = 600;
  let seed = 1;

  // Uniform numbers from a seed, so that a slider changes the network and not the luck (mulberry32).
  function generator(start) {
    let state = start >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  }

  function normals(uniform, count) {
    return Float64Array.from({ length: count }, () =>
      Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()));
  }

  function settings() {
    const value = (name) => Number(form.elements[name].value);
    return { omega: 10 ** value("omega"), phases: value("phases") / 100, depth: value("depth"), width: value("width") };
  }

  // Values at all positions, and for each hidden layer the mean over positions and neurons of the squared derivative by
  // the first layer's phase, relative to that of the first layer.
  function evaluate({ omega, phases, depth, width }) {
    const uniform = generator(seed);
    const bias = () => Float64Array.from({ length: width }, () => (2 * uniform() - 1) * Math.PI * phases);
    const layers = [{ weights: normals(uniform, width), biases: bias() }];
    for (let l = 0; l < depth; l++) {
      const weights = normals(uniform, width * width).map((entry) => entry * Math.sqrt(2 / width));
      layers.push({ weights, biases: bias() });
    }
    const output = normals(uniform, width).map((entry) => entry * Math.sqrt(2 / width));
    const values = new Float64Array(POSITIONS);
    const squares = new Float64Array(depth + 1);
    for (let i = 0; i < POSITIONS; i++) {
      const x = (2 * (i + 0.5)) / POSITIONS - 1;
      let features = new Float64Array(width);
      let slopes = new Float64Array(width); // by the position, in units of ω₀
      for (let n = 0; n < width; n++) {
        const z = omega * layers[0].weights[n] * x + layers[0].biases[n];
        features[n] = Math.sin(z);
        slopes[n] = Math.cos(z) * layers[0].weights[n];
        squares[0] += slopes[n] ** 2;
      }
      for (let l = 1; l <= depth; l++) {
        const { weights, biases } = layers[l];
        const next = new Float64Array(width);
        const steeper = new Float64Array(width);
        for (let n = 0; n < width; n++) {
          let z = biases[n];
          let slope = 0;
          for (let m = 0; m < width; m++) {
            z += weights[n * width + m] * features[m];
            slope += weights[n * width + m] * slopes[m];
          }
          next[n] = Math.sin(z);
          steeper[n] = Math.cos(z) * slope;
          squares[l] += steeper[n] ** 2;
        }
        features = next;
        slopes = steeper;
      }
      for (let n = 0; n < width; n++) values[i] += output[n] * features[n];
    }
    return { values, gains: Array.from(squares, (sum) => sum / squares[0]) };
  }

  // A canvas of the size that the page gives it, sharp on any screen.
  function prepare(canvas) {
    const scale = window.devicePixelRatio || 1;
    const { width, height } = canvas.getBoundingClientRect();
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px sans-serif";
    pen.fillStyle = pen.strokeStyle = getComputedStyle(root).color;
    return { pen, width, height };
  }

  function drawCurve(values) {
    const { pen, width, height } = prepare(curve);
    const middle = values.reduce((sum, value) => sum + value, 0) / values.length;
    const reach = Math.max(1, ...values.map((value) => Math.abs(value - middle)));
    pen.beginPath();
    values.forEach((value, i) => {
      pen.lineTo((i / (values.length - 1)) * width, (0.5 - (0.47 * (value - middle)) / reach) * height);
    });
    pen.strokeStyle = "#4a8fdd";
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  function drawBars(gains) {
    const { pen, width, height } = prepare(bars);
    const top = Math.max(2, ...gains) * 1.1;
    const base = height - 18;
    const step = width / gains.length;
    const one = base - (base - 16) / top;
    pen.setLineDash([4, 4]);
    pen.beginPath();
    pen.moveTo(0, one);
    pen.lineTo(width, one);
    pen.stroke();
    pen.textAlign = "center";
    gains.forEach((gain, l) => {
      const tall = (gain / top) * (base - 16);
      pen.globalAlpha = 0.55;
      pen.fillRect((l + 0.2) * step, base - tall, 0.6 * step, tall);
      pen.globalAlpha = 1;
      pen.fillText(gain.toFixed(2), (l + 0.5) * step, base - Math.max(tall, gain < 1 ? base - one : 0) - 4);
      pen.fillText(l === 0 ? "input" : `layer ${l}`, (l + 0.5) * step, height - 4);
    });
  }

  function draw() {
    const chosen = settings();
    const shown = { omega: chosen.omega.toPrecision(2), phases: `${Math.round(100 * chosen.phases)} %` };
    for (const input of form.querySelectorAll("input")) {
      input.nextElementSibling.textContent = shown[input.name] ?? input.value;
    }
    const { values, gains } = evaluate(chosen);
    drawCurve(values);
    drawBars(gains);
  }

  form.addEventListener("input", draw);
  form.querySelector("button").addEventListener("click", () => {
    seed += 1;
    draw();
  });
  new ResizeObserver(draw).observe(root);
  new MutationObserver(draw).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
  draw();
})();
