// The tools of the MCP endpoint, as data. A tool is a route: its schemas, checks, errors and
// response are the route's, and its arguments are the route's parameters in snake case (spec: Agent
// sessions rule 14). docs/mcp.md is printed from this table.
import { execInSandbox } from '../commands/exec.ts';
import { listFiles, readFile, writeFile } from '../files/files.ts';
import { createPreview } from '../previews/previews.ts';
import type { Route } from '../route/route.ts';
import { sleepSandbox, wakeSandbox } from '../sandboxes/lifecycle.ts';
import { createSandbox, destroySandbox, getSandbox, listSandboxes } from '../sandboxes/sandboxes.ts';
import type { McpToolset } from './endpoint.ts';

export interface McpTool {
  name: string;
  /** Short name for people. */
  title: string;
  /** For the model: what the tool does, and what to do next. */
  description: string;
  toolset: McpToolset;
  route: Route;
  hints: McpHints;
}

/** Hints for clients that ask people before a call. Every absent hint is false. */
interface McpHints {
  readOnly?: true;
  /** May change or delete something that exists. */
  destructive?: true;
  idempotent?: true;
  /** Reaches systems outside the service, such as a model or the internet. */
  openWorld?: true;
}

const SANDBOX_TOOLS: readonly McpTool[] = [
  {
    name: 'create_sandbox',
    title: 'Create sandbox',
    description:
      'Creates a sandbox, an isolated Linux VM, in a project. Poll get_sandbox until its status is ready. ' +
      'Destroy it when it is no longer needed.',
    toolset: 'sandboxes',
    route: createSandbox,
    hints: {},
  },
  {
    name: 'list_sandboxes',
    title: 'List sandboxes',
    description: 'Lists the sandboxes of an org, newest first.',
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
    name: 'run_command',
    title: 'Run command',
    description:
      'Runs a shell command in /code of a sandbox and waits until it exits. Returns the exit code and the last ' +
      '64 KiB of each output. Start long-running programs in the background.',
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

export const MCP_TOOLS: readonly McpTool[] = [...SANDBOX_TOOLS];
