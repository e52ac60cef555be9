// Tools of processes, programs that outlive the call that starts them.
import {
  getProcess,
  listProcesses,
  readProcessOutput,
  removeProcess,
  signalProcess,
  startProcess,
  writeProcessInput,
} from '../commands/processes.ts';
import type { McpTool } from './tool.ts';

export const PROCESS_TOOLS: readonly McpTool[] = [
  {
    name: 'start_process',
    title: 'Start process',
    description:
      'Starts a program in a sandbox and returns at once: a server, a watcher, a long build. It outlives the call, ' +
      'and a sleep of the sandbox. Give either command, a line for /bin/sh, or argv. Then read its output with ' +
      'read_process_output, and open a port of it with create_preview. keep_awake keeps the sandbox awake while it ' +
      'runs. After a call that timed out, repeat it with the same idempotency_key.',
    toolset: 'sandboxes',
    route: startProcess,
    hints: { destructive: true, openWorld: true },
  },
  {
    name: 'list_processes',
    title: 'List processes',
    description: 'Lists the processes of a sandbox, newest first: those that run, and the last that have ended.',
    toolset: 'sandboxes',
    route: listProcesses,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'get_process',
    title: 'Get process',
    description:
      'Returns a process with its status and, once it has ended, its exit code, signal or reason. wait_seconds waits ' +
      'for its end.',
    toolset: 'sandboxes',
    route: getProcess,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'read_process_output',
    title: 'Read process output',
    description:
      'Returns output of a process. Pass cursor as since in the next call to continue; wait_seconds waits for more. ' +
      'tail, without since, returns only so many of the last bytes. complete true: there will be no more. Chunks ' +
      'that are not UTF-8 text are in base64.',
    toolset: 'sandboxes',
    route: readProcessOutput,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'write_process_input',
    title: 'Write process input',
    description:
      'Writes to the standard input of a process that was started with stdin or tty. end true closes it. The ' +
      'response has the bytes of the input so far: pass them as offset of the next call, so that a repeated call ' +
      'writes nothing twice.',
    toolset: 'sandboxes',
    route: writeProcessInput,
    hints: { destructive: true, openWorld: true },
  },
  {
    name: 'signal_process',
    title: 'Signal process',
    description:
      'Sends a signal, by default SIGTERM, to a process and the programs that it started. Then get_process with ' +
      'wait_seconds waits for its end.',
    toolset: 'sandboxes',
    route: signalProcess,
    hints: { destructive: true },
  },
  {
    name: 'remove_process',
    title: 'Remove process',
    description: 'Kills a process if it runs, and removes it with its output.',
    toolset: 'sandboxes',
    route: removeProcess,
    hints: { destructive: true, idempotent: true },
  },
];
