/** What `deno task bench` is asked for. */

import { parseArgs } from "node:util";

/** How to call it. */
export const USAGE = `Usage: deno task bench [options]

  --case TEXT      only the cases whose name holds TEXT; may be given several times
  --json FILE      write all samples, and what the machine is, as JSON
  --compare FILE   tell what became slower or faster than in an earlier --json FILE
  --charts FOLDER  draw the run into FOLDER, as SVG
  --with FILE      compare or draw an earlier --json FILE instead of running anything
  --quick          few short rounds, for trying things out; the figures mean little
  --help           this text`;

/** The options; paths are `null` where nothing is asked for. */
export interface Options {
  readonly cases: readonly string[];
  readonly json: string | null;
  readonly compare: string | null;
  readonly charts: string | null;
  readonly with: string | null;
  readonly quick: boolean;
}

/**
 * Reads the arguments; `null` if only help is wanted.
 *
 * @throws {TypeError} If they make no sense.
 */
export function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      case: { type: "string", multiple: true, default: [] },
      json: { type: "string" },
      compare: { type: "string" },
      charts: { type: "string" },
      with: { type: "string" },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  const { json = null, compare = null, charts = null, with: other = null } = values;
  if (other !== null) {
    if (compare === null && charts === null) {
      throw new TypeError("Cannot use --with: neither --compare nor --charts is given");
    }
    if (json !== null || values.quick || values.case.length > 0) {
      throw new TypeError("Cannot use --with: --json, --quick and --case are of a run");
    }
  }
  return { cases: values.case, json, compare, charts, with: other, quick: values.quick };
}
