/** A competitor committed the same new key while this transaction waited for a lock: undo everything and run it again. */
export class TurnRace extends Error {
  /** `Db.tx` runs a transaction again on this SQLSTATE (serialization failure). */
  readonly code = "40001";
  readonly retry = "again";
  constructor() {
    super("the same operation was committed by another transaction; run this one again");
    this.name = "TurnRace";
  }
}
