export { type Correlation, correlation, withCorrelation } from "./correlation.js";
export { createLogger, type LogOptions, type RootLogger } from "./log.js";
export { createMetrics, type Metrics, type Snapshot } from "./metrics.js";
