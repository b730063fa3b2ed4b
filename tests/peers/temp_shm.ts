/** Names below /dev/shm that no other test has, and that are gone when the test is. */

/** One path; nothing is there until somebody creates it. */
export class TempShm implements Disposable {
  /** The path. */
  readonly path: string = `/dev/shm/loadslots_test_${crypto.randomUUID()}.shm`;

  /** Removes what is at the path. */
  [Symbol.dispose](): void {
    try {
      Deno.removeSync(this.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}
