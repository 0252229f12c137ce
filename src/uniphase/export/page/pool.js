// Workers that evaluate the network: one that drives the GPU, or several with typed arrays.

const MOST_WORKERS = 8;

export class Pool {
  // `webgl` says whether WebGL2 may be used.
  static async start(source, layers, webgl) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const pool = new Pool();
    await pool.add(url, layers, webgl);
    if (pool.engine !== "WebGL2") {
      const more = Math.min(MOST_WORKERS, (navigator.hardwareConcurrency ?? 2) - 1) - 1;
      await Promise.all(Array.from({ length: Math.max(0, more) }, () => pool.add(url, layers, false)));
    }
    URL.revokeObjectURL(url);
    return pool;
  }

  constructor() {
    Object.assign(this, { idle: [], waiting: [], running: new Map(), next: 0, engine: null, capacity: Infinity });
    this.samplesPerSecond = 0;
  }

  add(url, layers, webgl) {
    const worker = new Worker(url);
    return new Promise((resolve, reject) => {
      worker.onerror = (event) => reject(new Error(event.message));
      worker.onmessage = ({ data }) => {
        this.engine = data.engine;
        if (data.capacity) {
          this.capacity = Math.min(this.capacity, data.capacity);
          resolve();
        } else this.finish(data);
        this.idle.push(worker);
        this.dispatch();
      };
      worker.postMessage({ layers, webgl });
    });
  }

  // The values at the samples of a plane, which must not be more than `capacity`. Rejects if the signal is aborted.
  evaluate(plane, quantity, signal) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ plane, quantity, signal, resolve, reject });
      this.dispatch();
    });
  }

  dispatch() {
    while (this.waiting.length > 0 && this.idle.length > 0) {
      const task = this.waiting.shift();
      if (task.signal?.aborted) {
        task.reject(task.signal.reason);
        continue;
      }
      const id = this.next++;
      this.running.set(id, { ...task, started: performance.now() });
      this.idle.pop().postMessage({ id, plane: task.plane, quantity: task.quantity });
    }
  }

  finish({ id, values, channels }) {
    const task = this.running.get(id);
    this.running.delete(id);
    const seconds = Math.max(1e-4, (performance.now() - task.started) / 1000);
    const rate = ((task.plane.columns * task.plane.rows) / seconds) * (this.running.size + 1);
    this.samplesPerSecond = this.samplesPerSecond === 0 ? rate : 0.8 * this.samplesPerSecond + 0.2 * rate;
    if (task.signal?.aborted) task.reject(task.signal.reason);
    else task.resolve({ values, channels });
  }
}
