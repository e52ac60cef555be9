// Records the SQL statements of a piece of work, as given to the driver: they determine what a
// response's timing can reveal.
import { Client } from 'pg';

type Query = (this: Client, ...given: unknown[]) => unknown;

/** Records statements of every connection of this process, in the order sent. */
export class StatementRecorder {
  #recorded: string[] | null = null;

  constructor() {
    const prototype = Client.prototype as unknown as { query: Query };
    const { query } = prototype;
    const note = (statement: unknown): void => void this.#recorded?.push(textOf(statement));
    prototype.query = function noting(...given) {
      note(given[0]);
      return query.apply(this, given);
    };
  }

  /** Runs the work alone; returns its SQL statements. */
  async during<T>(work: () => Promise<T>): Promise<{ result: T; statements: string[] }> {
    const noted: string[] = [];
    this.#recorded = noted;
    try {
      return { result: await work(), statements: noted };
    } finally {
      this.#recorded = null;
    }
  }
}

function textOf(statement: unknown): string {
  if (typeof statement === 'string') return statement;
  const { text } = statement as { text?: unknown };
  return typeof text === 'string' ? text : 'a statement without text';
}
