// Limits of the model gateway. docs/limits.md lists them with their tests.

export const MODEL_LIMITS = {
  /** Requests of a VM at the same time, those that wait for a key included. */
  perVm: 8,
  /** Requests of a host at the same time; an org gets at most half of what the others leave. */
  perHost: 1_024,
  /** Sustained rates, and bursts. */
  vmPerMinute: 120,
  vmBurst: 60,
  orgPerMinute: 1_200,
  orgBurst: 600,
  connectionsPerVm: 32,
  headBytes: 32_768,
  requestBytes: 32 * 1_048_576,
  responseBytes: 64 * 1_048_576,
  /** Responses with a status of 1xx before the final one. */
  interimResponses: 16,
  /** From the arrival of a request's head to the arrival of its body. */
  requestMs: 120_000,
  /** Wait for a key that the host daemon does not know yet. */
  accessMs: 20_000,
  connectMs: 10_000,
  /** From the first byte of the request to the last of the response. */
  exchangeMs: 600_000,
  /** Idle connections of guests: longer than their clients keep them. */
  idleMs: 120_000,
  /** Unsent bytes of a direction that make its source wait. */
  bufferBytes: 65_536,
  /** Idle connections to a provider: shorter than any server keeps them. */
  providerIdleMs: 4_000,
} as const;
export type ModelLimits = { readonly [L in keyof typeof MODEL_LIMITS]: number };
