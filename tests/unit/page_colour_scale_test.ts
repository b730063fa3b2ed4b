/** The colours of usage: even steps, in order for every eye, and readable. */

import assert from "node:assert/strict";
import {
  colourScale,
  distance,
  parseHex,
  relativeLuminance,
  scaleLab,
  STEPS,
} from "../../src/http/page/client/colour_scale.js";

const SCHEMES = ["light", "dark"] as const;

/** Steps between neighbours. */
function stepsOf(scheme: typeof SCHEMES[number]): number[] {
  const scale = scaleLab(scheme);
  return scale.slice(1).map((lab, index) => distance(lab, scale[index] ?? lab));
}

for (const scheme of SCHEMES) {
  Deno.test(`${scheme}: a scale has a colour for each per cent`, () => {
    const scale = colourScale(scheme);
    assert.equal(scale.length, STEPS);
    assert.equal(new Set(scale.map(({ fill }) => fill)).size, STEPS);
    for (const { fill } of scale) assert.match(fill, /^#[0-9a-f]{6}$/);
  });

  Deno.test(`${scheme}: every per cent looks as large as any other`, () => {
    const steps = stepsOf(scheme);
    const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length;
    for (const step of steps) assert.ok(Math.abs(step / mean - 1) < 0.05, `${step / mean}`);
  });

  Deno.test(`${scheme}: lightness goes one way, as do the screen's colours in grey`, () => {
    const sign = scheme === "light" ? -1 : 1;
    const lightness = scaleLab(scheme).map(([value]) => value);
    const grey = colourScale(scheme).map(({ fill }) => relativeLuminance(parseHex(fill)));
    for (const values of [lightness, grey]) {
      values.slice(1).forEach((value, index) => {
        assert.ok(sign * (value - (values[index] ?? value)) > 0, `${index}`);
      });
    }
  });

  Deno.test(`${scheme}: without red or green cones the order of colours stays`, () => {
    const sign = scheme === "light" ? -1 : 1;
    // Luminance as the cones that are left give it: long or medium ones alone.
    for (const weights of [[0.0, 0.9, 0.1], [0.45, 0.5, 0.05]]) {
      const values = colourScale(scheme).map(({ fill }) => {
        const rgb = parseHex(fill).map((part) => (part / 255) ** 2.2);
        return rgb.reduce((sum, part, index) => sum + part * (weights[index] ?? 0), 0);
      });
      for (let i = 5; i < values.length; i += 5) {
        assert.ok(sign * ((values[i] ?? 0) - (values[i - 5] ?? 0)) > 0, `${weights} ${i}`);
      }
    }
  });

  Deno.test(`${scheme}: ink is read on every colour (WCAG AA)`, () => {
    for (const { fill, ink } of colourScale(scheme)) {
      const [one, other] = [fill, ink].map((hex) => relativeLuminance(parseHex(hex)));
      const [light, dark] = [Math.max(one ?? 0, other ?? 0), Math.min(one ?? 0, other ?? 0)];
      assert.ok((light + 0.05) / (dark + 0.05) >= 4.5, `${ink} on ${fill}`);
    }
  });
}
