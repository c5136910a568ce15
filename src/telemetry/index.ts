export { addCorrelation, type Correlation, withCorrelation } from "./correlation.js";
export { createLogger, type LogOptions, type RootLogger } from "./log.js";
export { createMetrics, type Metrics, type Snapshot } from "./metrics.js";
export { type Attributes, createTracer, NO_TRACER, type Tracer } from "./tracing.js";
