// `berth ps`, `logs`, `attach` and `kill`: processes of a sandbox, which `berth exec -d` starts.
import { TERMINAL_SIGNALS } from '@berth/sdk/limits';
import { InvalidArgumentError } from 'commander';
import { wholeNumber } from '../program/option-values.ts';
import { PROCESS_LIMITS } from '@berth/sdk/command-limits';
import type { CommandSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';

/** Last bytes that `berth attach` shows: about a screen. */
const ATTACH_TAIL_BYTES = 4_096;

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';
const PRC = 'prc_4hgk2f6z5uq3vw7xjn2mtdra';
const PROCESS = { name: '<process>', about: 'process id, or its name' };
const NAMES = 'A name must belong to exactly one running process, or to exactly one process at all.';
const tail = wholeNumber(0, PROCESS_LIMITS.readBytes);

const ps: CommandSpec = {
  name: 'ps',
  summary: 'list the processes that run in a sandbox, newest first',
  details: 'Lists processes that berth exec -d or the API started. Wakes nothing.',
  arguments: [SANDBOX],
  options: [
    { flags: '-a, --all', about: 'list ended processes too, as far as they are kept' },
    { flags: '-q, --quiet', about: 'print only ids' },
  ],
  examples: [`berth ps ${ID}`, `berth ps -a ${ID} --json | jq '.processes[] | select(.exitCode != 0)'`],
  load: async () => (await import('./ls.ts')).listProcesses,
};

const logs: CommandSpec = {
  name: 'logs',
  summary: 'print why a sandbox is as it is, or the output of a process',
  details: `Without a process, prints the reason of a failure, the last start, git's output of a failed clone, the
last events and the end of the console of the VM: messages of its kernel, and whatever root wrote.

With a process, writes the bytes of stdout to stdout and those of stderr to stderr, unchanged; the output of a
terminal to stdout. Bytes that are no longer kept are reported on stderr. With --json, each chunk of
the API is a line of JSON.

With --follow, prints further output until no program can write to it any more, also across outages
and sleeps of the sandbox, then reports the end of the process. Wakes nothing.

${NAMES}`,
  arguments: [SANDBOX, { ...PROCESS, name: '[process]' }],
  options: [
    { flags: '-f, --follow', about: 'follow the output to its end' },
    { flags: '--tail <bytes>', about: 'only so many of the last bytes of each stream', parse: tail },
    { flags: '--since <cursor>', about: 'only output behind this cursor', parse: cursor },
  ],
  examples: [
    `berth logs ${ID} # why did it fail?`,
    `berth logs -f ${ID} web`,
    `berth logs --tail 4096 ${ID} ${PRC}`,
    `berth logs ${ID} web --json | jq -r .cursor`,
  ],
  load: async () => (await import('./logs.ts')).showLogs,
};

const attach: CommandSpec = {
  name: 'attach',
  summary: 'connect this terminal, or stdin and stdout, to a process',
  details: `Shows the output from now on, and passes stdin if the process has input. With a terminal on both
sides, all keys go to the process: Ctrl-P Ctrl-Q detaches. Otherwise the end of stdin closes the
input of the process, unless that is a terminal, and Ctrl-C sends it SIGINT; a second Ctrl-C detaches.

A process continues after berth detaches, is stopped or loses its connection. To watch it only, use
berth logs -f. ${NAMES}

Exit code: that of the process; 128 + n if signal n killed it; 124 after its timeout; 125 if Berth
failed; 0 after Ctrl-P Ctrl-Q.`,
  arguments: [SANDBOX, PROCESS],
  options: [
    {
      flags: '--tail <bytes>',
      about: 'first show so many of the last bytes of each stream',
      parse: tail,
      default: ATTACH_TAIL_BYTES,
    },
    { flags: '--no-stdin', about: 'do not pass stdin' },
  ],
  examples: [
    `berth attach ${ID} web`,
    `berth attach ${ID} ${PRC} < input.txt`,
    `berth attach --no-stdin ${ID} build # wait for its end, and exit with its exit code`,
  ],
  json: false,
  failureExit: 125,
  load: async () => (await import('./attach.ts')).attach,
};

const kill: CommandSpec = {
  name: 'kill',
  summary: 'signal processes, or kill and remove them',
  details:
    'Signals the process group, or the foreground programs of a terminal. ' +
    `Tries every process; the exit code is 1 if any failed. ${NAMES}`,
  arguments: [SANDBOX, { name: '<processes...>', about: 'process ids or names' }],
  options: [
    { flags: '-s, --signal <signal>', about: 'signal to send (default: SIGTERM)', parse: signal },
    { flags: '--remove', about: 'kill them if they run, and remove them with their output' },
  ],
  examples: [
    `berth kill ${ID} web`,
    `berth kill -s INT ${ID} ${PRC}`,
    `berth kill --remove ${ID} $(berth ps -aq ${ID})`,
  ],
  load: async () => (await import('./kill.ts')).killProcesses,
};

export const processCommands: readonly CommandSpec[] = [ps, logs, attach, kill];

function cursor(typed: string): string {
  if (/^\d{1,16}(?:\.\d{1,16})?$/.test(typed)) return typed;
  throw new InvalidArgumentError('It must be a cursor of berth logs, such as 1024.0.');
}

/** With or without SIG, in any case. */
function signal(typed: string): string {
  const name = `SIG${typed.toUpperCase().replace(/^SIG/, '')}`;
  if (TERMINAL_SIGNALS.some((known) => known === name)) return name;
  throw new InvalidArgumentError(`Allowed signals are ${TERMINAL_SIGNALS.join(', ')}.`);
}
