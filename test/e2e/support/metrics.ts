/** Reading Prometheus' text format. */

export const scrape = async (base: string): Promise<string> => (await fetch(`${base}/metrics`)).text();

/** The value of one sample, written as in the scrape: `name{label="value"}`. 0 when it is not there. */
export async function count(base: string, sample: string): Promise<number> {
  const line = (await scrape(base)).split("\n").find((one) => one.startsWith(`${sample} `));
  return line === undefined ? 0 : Number(line.slice(sample.length + 1));
}

/** Names in the table of docs/metrics.md. */
export const documentedMetrics = (text: string): string[] =>
  [...text.matchAll(/^\| `(countersign_\w+)`/gm)].map((match) => match[1] ?? "");
