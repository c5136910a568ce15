/** Data of third parties that lies beside some checkouts. Never part of the project. */
import { existsSync } from "node:fs";
import path from "node:path";
import { environment } from "../../config/index.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";

const BESIDE_THE_CHECKOUT = "../shared/data";

/**
 * A file or folder in `dir`, in COUNTERSIGN_DATA, or beside the checkout; null: it is not there.
 * @throws CommandFailure when `dir` was named and does not hold it
 */
export function handedData(dir: string | undefined, ...segments: readonly string[]): string | null {
  const root = dir ?? environment()["COUNTERSIGN_DATA"] ?? BESIDE_THE_CHECKOUT;
  const found = path.join(path.resolve(root), ...segments);
  if (existsSync(found)) return found;
  if (dir !== undefined) throw new CommandFailure(`There is no ${found}.`, EXIT_BAD_USAGE);
  return null;
}
