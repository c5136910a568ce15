/** Exit codes of the command line (0: as it should be). */
export const EXIT_CHECK_FAILED = 1;
export const EXIT_BAD_USAGE = 2;

/** Ends a command with a sentence and a code; thrown, so that everything open is closed on the way out. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode: number = EXIT_CHECK_FAILED) {
    super(message);
    this.name = "CommandFailure";
    this.exitCode = exitCode;
  }
}
