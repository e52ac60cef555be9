// Projects: what sandboxes belong to inside an org, and the defaults they fall back to.
import { z } from 'zod';
import { IDLE_MINUTES, NAME_CHARACTERS } from './limits.ts';
import { profile } from './machine-sizes.ts';
import { defineRoute } from './route.ts';
import { persistencePolicy, branchName, repositoryName } from './sandbox-fields.ts';
import { idText, text, timestamp } from './text.ts';

/** Free text with one known value: `external` means that the machines serve the operator's product users. */
const useCase = text(1, 64);
export const DEFAULT_USE_CASE = 'internal';
export const EXTERNAL_USE_CASE = 'external';

export const project = z.strictObject({
  id: idText,
  orgId: idText,
  name: z.string(),
  useCase: z.string(),
  defaultRepository: z.string().nullable(),
  defaultBranch: z.string().nullable(),
  defaultProfile: profile.nullable(),
  defaultPersistencePolicy: persistencePolicy.nullable(),
  /** Minutes without use after which its `sleep_resume` sandboxes go to sleep by themselves; 0: never; null: 30. */
  defaultIdleMinutes: z.int().nonnegative().nullable(),
  /** Whether a command or preview of a stopped sandbox wakes it. */
  wakeOnUse: z.boolean(),
  /** Machine hours a billing period; null: no cap of its own. */
  sandboxMachineHourLimit: z.number().nonnegative().nullable(),
  createdAt: timestamp,
  updatedAt: timestamp,
});
export type Project = z.infer<typeof project>;

/** The spec does not show this table, so unknown fields are ignored. */
export const createProjectBody = z.object({
  /** Made up by the server when absent. */
  name: text(1, NAME_CHARACTERS).optional(),
  useCase: useCase.optional(),
  defaultProfile: profile.nullable().optional(),
  defaultPersistencePolicy: persistencePolicy.nullable().optional(),
  defaultRepository: repositoryName.nullable().optional(),
  defaultBranch: branchName.nullable().optional(),
  defaultIdleMinutes: z.int().min(IDLE_MINUTES.min).max(IDLE_MINUTES.max).nullable().optional(),
  wakeOnUse: z.boolean().optional(),
  sandboxMachineHourLimit: z.number().nonnegative().nullable().optional(),
});
export type CreateProjectBody = z.infer<typeof createProjectBody>;

/** Fields of the body whose feature is not built: a value other than null is refused by name. */
export const PROJECT_FIELDS_NOT_AVAILABLE_YET = [
  'defaultRepository',
  'defaultBranch',
  'sandboxMachineHourLimit',
] as const satisfies (keyof CreateProjectBody)[];

const orgParams = z.object({ orgId: idText });

export const listProjects = defineRoute({
  name: 'listProjects',
  summary: "The org's projects, newest first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/projects',
  auth: ['session', 'api_key'],
  permission: 'project.read',
  request: { params: orgParams },
  response: { status: 200, body: z.strictObject({ projects: z.array(project) }) },
  errors: [],
  activity: null,
  published: true,
});

export const createProject = defineRoute({
  name: 'createProject',
  summary: 'Creates a project',
  method: 'POST',
  path: '/v1/orgs/{orgId}/projects',
  auth: ['session', 'api_key'],
  permission: 'project.create',
  request: { params: orgParams, body: createProjectBody },
  response: { status: 201, body: z.strictObject({ project }) },
  errors: ['not_available_yet'],
  activity: 'project_created',
  published: true,
});
