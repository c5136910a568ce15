/** Files that a command is told to read or to write: what goes wrong with them is one sentence and bad usage, never a stack. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileReason, folderReason } from "../domain/text/file-reason.js";
import { CommandFailure, EXIT_BAD_USAGE } from "./exit.js";

/** @throws CommandFailure with exit code 2 when the file cannot be read */
export const readTextFile = (file: string): string =>
  orSay(`${file} cannot be read`, () => readFileSync(file, "utf8"));

/** @throws CommandFailure with exit code 2 when the file cannot be written */
export const writeTextFile = (file: string, text: string): void =>
  orSay(`${file} cannot be written`, () => writeFileSync(file, text));

/** Makes a folder, and what is above it. @throws CommandFailure with exit code 2 when that cannot be */
export const makeFolder = (folder: string): void => {
  orSay(`${folder} cannot be made`, () => mkdirSync(folder, { recursive: true }), folderReason);
};

function orSay<T>(what: string, work: () => T, reason: (error: unknown) => string = fileReason): T {
  try {
    return work();
  } catch (error) {
    throw new CommandFailure(`${what}: ${reason(error)}.`, EXIT_BAD_USAGE);
  }
}
