/** "1 step", "2 steps": a number with its thing. Only for things whose plural takes an s. */
export const counted = (count: number | bigint, thing: string): string =>
  `${count} ${thing}${Number(count) === 1 ? "" : "s"}`;
