/**
 * The command line's own voice: results on stdout, everything else on stderr. With `--json` stdout carries one JSON
 * document and nothing else.
 */

/** Writes one line of a result to stdout. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Writes one line for the person at the keyboard to stderr. */
export function complain(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Writes one JSON document to stdout. Bigints are written as integers (refused when JSON would round them); dates as ISO 8601. */
export function printJson(document: unknown): void {
  process.stdout.write(`${toJsonText(document)}\n`);
}

/** JSON text as `printJson` writes it. */
export const toJsonText = (document: unknown): string => JSON.stringify(document, jsonValue, 2);

function jsonValue(_key: string, value: unknown): unknown {
  if (typeof value !== "bigint") return value;
  const asNumber = Number(value);
  if (!Number.isSafeInteger(asNumber)) throw new RangeError(`${value} is too large for JSON`);
  return asNumber;
}

/** Pads cells into columns; the first row is the heading. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (sofar, row) => row.map((cell, column) => Math.max(sofar[column] ?? 0, cell.length)),
    [],
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** A share as people read it: 0.445 is "44.5 %". */
export const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`;
