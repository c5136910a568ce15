/** Evaluation: the product put through faults, tickets and load, and counted from outside. */
export { runMatrix } from "./faults/matrix.js";
export { type MatrixReport, matrixReport, reportTables } from "./faults/report.js";
export { type MatrixPorts, openWorld } from "./faults/world.js";
