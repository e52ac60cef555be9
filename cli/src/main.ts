// Entry point of a checkout, started by the launcher: all commands.
import { clientChapters } from './chapters.ts';
import { machineChapters } from './machine/verbs.ts';
import { run } from './run.ts';

// Ignore the operator's umask: secrets get explicit modes, and service users must read the rest.
process.umask(0o022);
await run([...machineChapters, ...clientChapters]);
