/** How long reads take, without the time in which their thread waited for a core. */

import { RawFile } from "../../support/raw_libc.ts";
import type { DeadlineReport } from "./orders.ts";

/** Opens what the kernel says of this thread; `null` where it says nothing. */
function openSchedstat(): RawFile | null {
  try {
    return new RawFile("/proc/thread-self/schedstat", { write: false });
  } catch {
    return null;
  }
}

/** Counts reads that took too long. */
export class DeadlineCheck {
  #timed = 0;
  #over5Ms = 0;
  #over20Ms = 0;
  #over100Ms = 0;
  #longestMs = 0;
  #missed = 0;
  #missedOver5Ms = 0;
  #waitedMs: number | null = null;
  readonly #schedstat: RawFile | null = openSchedstat();

  /** Notes the time before a round of reads. */
  begin(): void {
    this.#waitedMs = this.#askWaitedMs();
  }

  /** Notes how long a read took, and whether it found a lock kept. */
  took(ms: number, isMissed: boolean): void {
    this.#timed++;
    if (isMissed) this.#missed++;
    if (ms <= 5) return;
    const now = this.#askWaitedMs();
    const own = now === null || this.#waitedMs === null ? ms : ms - (now - this.#waitedMs);
    this.#waitedMs = now;
    this.#longestMs = Math.max(this.#longestMs, own);
    if (own > 5) this.#over5Ms++;
    if (own > 5 && isMissed) this.#missedOver5Ms++;
    if (own > 20) this.#over20Ms++;
    if (own > 100) this.#over100Ms++;
  }

  /** What this thread has waited for a core, in milliseconds. */
  #askWaitedMs(): number | null {
    if (this.#schedstat === null) return null;
    const [, waitedNs] = new TextDecoder().decode(this.#schedstat.read(0, 64)).split(" ");
    return Number(waitedNs) / 1e6;
  }

  /** All counts so far. */
  report(): DeadlineReport {
    return {
      timed: this.#timed,
      over5Ms: this.#over5Ms,
      over20Ms: this.#over20Ms,
      over100Ms: this.#over100Ms,
      longestMs: this.#longestMs,
      missed: this.#missed,
      missedOver5Ms: this.#missedOver5Ms,
    };
  }
}
