// A failure that the operator can resolve: shown as its message alone, without a stack.

export class OperatorFailure extends Error {
  override readonly name = 'OperatorFailure';
  /** Remedy, one line. */
  readonly remedy: string | undefined;

  constructor(message: string, options: { remedy?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.remedy = options.remedy;
  }
}
