"use strict";
// SHA-256 (FIPS 180-4), so that a page opened from a disk can check its own data.

function sha256(text) {
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
  const k = primes.map((p) => fraction(Math.cbrt(p)));
  const hash = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
  const bytes = new TextEncoder().encode(text);
  const words = new Uint32Array((((bytes.length + 8) >> 6) + 1) * 16);
  bytes.forEach((b, i) => (words[i >> 2] |= b << (24 - (i % 4) * 8)));
  words[bytes.length >> 2] |= 0x80 << (24 - (bytes.length % 4) * 8);
  words[words.length - 2] = Math.floor(bytes.length / 2 ** 29);
  words[words.length - 1] = bytes.length * 8;
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const w = new Int32Array(64);
  for (let block = 0; block < words.length; block += 16) {
    for (let i = 0; i < 64; i++) {
      if (i < 16) w[i] = words[block + i];
      else {
        const a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
      }
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => (hash[i] = (hash[i] + x) | 0));
  }
  return hash.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
}
