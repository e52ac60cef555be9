// What one check of the doctor finds.

/** `ok`; `warn`: works, but not as it could; `fault`: Berth cannot do its work. */
export type Grade = 'ok' | 'warn' | 'fault';

export interface Finding {
  subject: string;
  grade: Grade;
  detail: string;
  /** How to mend it; for `warn` and `fault`. */
  remedy?: string;
}

export interface Check {
  subject: string;
  /** What throws becomes a fault with its message. */
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
