// Checks of the doctor and their findings.

/** `ok`; `warn`: works, but degraded; `fault`: Berth cannot work. */
export type Grade = 'ok' | 'warn' | 'fault';

export interface Finding {
  subject: string;
  grade: Grade;
  detail: string;
  /** Remedy, for `warn` and `fault`. */
  remedy?: string;
}

export interface Check {
  subject: string;
  /** An exception becomes a fault with its message. */
  run(): Promise<Finding[]>;
}

export function ok(subject: string, detail: string): Finding {
  return { subject, grade: 'ok', detail };
}

export function warn(subject: string, detail: string, remedy: string): Finding {
  return { subject, grade: 'warn', detail, remedy };
}

export function fault(subject: string, detail: string, remedy: string): Finding {
  return { subject, grade: 'fault', detail, remedy };
}
