// Tools of sandboxes: their lifecycle, commands, files and ports.
import { execInSandbox } from '../commands/exec.ts';
import { getDiagnostics } from '../diagnostics/diagnostics.ts';
import { createFolder, deleteFile, moveFile } from '../files/changes.ts';
import { listFiles, readFile, writeFile } from '../files/files.ts';
import { createPreview } from '../previews/previews.ts';
import { sleepSandbox, wakeSandbox } from '../sandboxes/lifecycle.ts';
import { listSandboxes } from '../sandboxes/list.ts';
import { createSandbox, destroySandbox, getSandbox } from '../sandboxes/sandboxes.ts';
import type { McpTool } from './tool.ts';

export const SANDBOX_TOOLS: readonly McpTool[] = [
  {
    name: 'create_sandbox',
    title: 'Create sandbox',
    description:
      'Creates a sandbox, an isolated Linux VM, in a project. Poll get_sandbox until its status is ready. ' +
      'get_or_create returns the sandbox of its key if there is one, and wakes it. Destroy a sandbox when it is no ' +
      'longer needed.',
    toolset: 'sandboxes',
    route: createSandbox,
    hints: {},
  },
  {
    name: 'list_sandboxes',
    title: 'List sandboxes',
    description: 'Lists the sandboxes of an org, by default newest first.',
    toolset: 'sandboxes',
    route: listSandboxes,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'get_sandbox',
    title: 'Get sandbox',
    description: 'Returns a sandbox with its status. running and ready are awake; stopped is asleep.',
    toolset: 'sandboxes',
    route: getSandbox,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'get_sandbox_diagnostics',
    title: 'Explain sandbox',
    description:
      'Returns why a sandbox is as it is: why it failed, how it last started, the output of the clone of its ' +
      'repository, the last lines of its console and its last changes. Works in any status and wakes nothing.',
    toolset: 'sandboxes',
    route: getDiagnostics,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'run_command',
    title: 'Run command',
    description:
      'Runs a shell command in /code of a sandbox and waits until it exits. Returns the exit code and the last ' +
      '64 KiB of each output. Start servers and other long programs with start_process.',
    toolset: 'sandboxes',
    route: execInSandbox,
    hints: { destructive: true, openWorld: true },
  },
  {
    name: 'list_files',
    title: 'List files',
    description: 'Lists a folder of a sandbox. Relative paths are relative to /code.',
    toolset: 'sandboxes',
    route: listFiles,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'read_file',
    title: 'Read file',
    description: 'Reads a file of a sandbox. Files that are not UTF-8 text are returned in base64.',
    toolset: 'sandboxes',
    route: readFile,
    hints: { readOnly: true, idempotent: true },
  },
  {
    name: 'write_file',
    title: 'Write file',
    description: 'Creates or replaces a file of a sandbox, with its folders.',
    toolset: 'sandboxes',
    route: writeFile,
    hints: { destructive: true, idempotent: true },
  },
  {
    name: 'delete_file',
    title: 'Delete file',
    description: 'Deletes a file, a link or a folder of a sandbox.',
    toolset: 'sandboxes',
    route: deleteFile,
    hints: { destructive: true, idempotent: true },
  },
  {
    name: 'move_file',
    title: 'Move file',
    description: 'Moves or renames a file or folder of a sandbox.',
    toolset: 'sandboxes',
    route: moveFile,
    hints: { destructive: true },
  },
  {
    name: 'create_folder',
    title: 'Create folder',
    description: 'Creates a folder of a sandbox, with its missing parents.',
    toolset: 'sandboxes',
    route: createFolder,
    hints: {},
  },
  {
    name: 'sleep_sandbox',
    title: 'Sleep',
    description: 'Puts a sandbox to sleep with its processes. An ephemeral sandbox is destroyed instead.',
    toolset: 'sandboxes',
    route: sleepSandbox,
    hints: { destructive: true },
  },
  {
    name: 'wake_sandbox',
    title: 'Wake',
    description: 'Wakes a stopped sandbox with its processes.',
    toolset: 'sandboxes',
    route: wakeSandbox,
    hints: {},
  },
  {
    name: 'create_preview',
    title: 'Create preview link',
    description: 'Creates a URL that opens a port of a sandbox in a browser.',
    toolset: 'sandboxes',
    route: createPreview,
    hints: {},
  },
  {
    name: 'destroy_sandbox',
    title: 'Destroy sandbox',
    description: 'Destroys a sandbox with its disk and snapshot, permanently.',
    toolset: 'sandboxes',
    route: destroySandbox,
    hints: { destructive: true, idempotent: true },
  },
];
