/** "one person in the role supervisor", "2 people in the role finance". */
export const peopleIn = (count: number, role: string): string =>
  `${count === 1 ? "one person" : `${count} people`} in the role ${role}`;

/** "1 step", "2 steps": a number with its thing. Only for things whose plural takes an s. */
export const counted = (count: number | bigint, thing: string): string =>
  `${count} ${thing}${Number(count) === 1 ? "" : "s"}`;
