// The ways into a sandbox: `berth shell`, `ssh`, `tunnel`, `known-host`.
import { port } from '../program/option-values.ts';
import type { CommandSpec } from '../program/command-spec.ts';

const SANDBOX = { name: '<sandbox>', about: 'id of the sandbox' };

const shell: CommandSpec = {
  name: 'shell',
  summary: 'the login shell of a sandbox in this terminal; needs no ssh and no key of ssh',
  details: "Ends with the shell's exit code.",
  arguments: [SANDBOX],
  examples: ['berth shell sbx_uodiunxlni4uyqmllemsqh4l'],
  json: false,
  load: async () => (await import('./shell.ts')).shell,
};

const ssh: CommandSpec = {
  name: 'ssh',
  summary: 'ssh into a sandbox that was created with --ssh-key; what follows its id goes to ssh',
  details: "Ends with ssh's exit code: the remote command's, or 255 for whatever fails before it, here or on the way.",
  arguments: [SANDBOX, { name: '[arguments...]', about: 'options of ssh (-i, -L, -R, -N, ...), then a command' }],
  examples: [
    'berth ssh sbx_uodiunxlni4uyqmllemsqh4l',
    'berth ssh sbx_uodiunxlni4uyqmllemsqh4l -L 8080:127.0.0.1:3000 -N # the port 3000 of the sandbox, here as 8080',
  ],
  passThrough: true,
  json: false,
  failureExit: 255,
  load: async () => (await import('./ssh.ts')).ssh,
};

const tunnel: CommandSpec = {
  name: 'tunnel',
  summary: 'connect stdin and stdout with a port of a sandbox, for ProxyCommand of ssh',
  arguments: [SANDBOX],
  options: [{ flags: '--port <port>', about: 'port of the sandbox (default: 22)', parse: port }],
  examples: [
    "ssh -o ProxyCommand='berth tunnel %h' berth@sbx_uodiunxlni4uyqmllemsqh4l",
    'berth tunnel sbx_uodiunxlni4uyqmllemsqh4l --port 5432',
  ],
  json: false,
  load: async () => (await import('./tunnel.ts')).tunnel,
};

const knownHost: CommandSpec = {
  name: 'known-host',
  summary: "print a sandbox's line of known_hosts, for KnownHostsCommand of ssh",
  arguments: [SANDBOX],
  examples: [
    "ssh -o KnownHostsCommand='berth known-host %h' -o ProxyCommand='berth tunnel %h' berth@sbx_uodiunxlni4uyqmllemsqh4l",
  ],
  json: false,
  load: async () => (await import('./known-host.ts')).knownHost,
};

export const connectionCommands: readonly CommandSpec[] = [shell, ssh, tunnel, knownHost];
