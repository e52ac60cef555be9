// Column types shared by the tables.
import type { ColumnType } from 'kysely';

export type Instant = Date;
/** Instant with a default. */
export type GeneratedInstant = ColumnType<Date, Date | undefined, Date>;
/** jsonb: read as a value, written as JSON text. */
export type Json<T> = ColumnType<T, string, string>;
/** Read as any text: rows may have values of another version. Written as one of these. */
export type WrittenAs<T extends string> = ColumnType<string, T, T>;
