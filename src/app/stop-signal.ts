/**
 * Ctrl-C and SIGTERM as one wish to stop.
 *
 * One Ctrl-C arrives several times: the terminal sends it to everybody in the group, and npm and su pass it on once more. A repetition must
 * not end the program in the middle of its stopping and leave behind what it has started; a Ctrl-C of a person who does not want to wait may.
 */
const AGAIN_AFTER_MS = 1_000;
/** As shells report it: 128 and the number of SIGINT. */
const EXIT_INTERRUPTED = 130;

/** Aborted by the first Ctrl-C or SIGTERM. A Ctrl-C a second later or more ends the process at once. */
export function stopSignal(): AbortController {
  const stop = new AbortController();
  let mayForce = false;
  const stopping = (): void => {
    if (stop.signal.aborted) return;
    stop.abort();
    setTimeout(() => {
      mayForce = true;
    }, AGAIN_AFTER_MS).unref();
  };
  process.on("SIGTERM", stopping);
  process.on("SIGINT", () => {
    if (mayForce) process.exit(EXIT_INTERRUPTED);
    stopping();
  });
  return stop;
}

/** What the database and the sandboxes of a dead parent leave to wait for is nothing: then it ends without waiting. */
const ORPHAN_MS = 2_000;

/** Stops when the process that has started this one is gone, however it ended: seen by the end of the channel to it (`stdio: ipc`). */
export function stopWithParent(stop: AbortController): void {
  const { channel } = process;
  const orphaned = (): void => {
    stop.abort();
    setTimeout(() => process.exit(EXIT_INTERRUPTED), ORPHAN_MS).unref();
  };
  process.once("disconnect", orphaned);
  channel?.unref();
  // It may have gone while this process was still loading its code.
  if (!process.connected) orphaned();
}
