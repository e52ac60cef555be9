// Interface of DNS look-ups; services/orgs/txt-records.ts implements it.

/** TXT records of a name, each joined; empty if there are none. Throws if DNS does not respond. */
export type FindTxtRecords = (name: string) => Promise<string[]>;
