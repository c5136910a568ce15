const ENGLISH = new Intl.ListFormat("en-GB");

/** Things as a sentence names them: "A", "A and B", "A, B and C". */
export const listOf = (items: readonly string[]): string => ENGLISH.format(items);
