/** Work of the lab machine, sent by the runner. */
export interface Order {
  /** Shell commands in the checkout, one after another. */
  steps: readonly Step[];
  /** Records of the load before the last power cut. */
  records?: readonly LoadRecord[];
}

export interface Step {
  name: string;
  command: string;
}

/** Written by the load before (`try`) and after (`ok`) a call, and kept outside of the machine. */
export type LoadRecord =
  | { op: 'key'; key: string }
  | { op: 'create'; id: string }
  | { op: 'write'; id: string; number: number }
  | { op: 'sleep' | 'wake' | 'destroy'; id: string; phase: 'try' | 'ok' };

/** Start of the line of a record. */
export const RECORD_MARK = '@record ';
