/** Time and identity as ports. Lease arithmetic uses the database's clock, never this one. */
export interface Clock {
  now(): Date;
}

/** Makes ids and random numbers; deterministic in tests. */
export interface Ids {
  /** A new id `prefix` + UUIDv7 without dashes. */
  next<P extends string>(prefix: P): `${P}${string}`;
  /** Uniform in [0, 1): jitter. */
  random(): number;
}
