/** How a text begins: as a sentence of its own, or as the rest of one. */

export const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

export const uncapital = (text: string): string => `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
