/** Plain JSON values, as stored in jsonb columns. Bigints are written as integers by `toJson` of the room that stores them. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
