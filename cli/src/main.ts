// The command `berth` of a checkout, which the launcher starts: every command, those of the machine
// among them.
import { clientChapters } from './chapters.ts';
import { machineChapters } from './machine/verbs.ts';
import { run } from './run.ts';

// Whatever the operator's is: what is secret gets its mode explicitly, the rest must be readable by
// the users that services run as.
process.umask(0o022);
await run([...machineChapters, ...clientChapters]);
