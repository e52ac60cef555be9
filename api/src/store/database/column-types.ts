// Kinds of columns that the tables have in common.
import type { ColumnType } from 'kysely';

export type Instant = Date;
/** Has a default. */
export type GeneratedInstant = ColumnType<Date, Date | undefined, Date>;
/** jsonb: read as a value, written as JSON text. */
export type Json<T> = ColumnType<T, string, string>;
