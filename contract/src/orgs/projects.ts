// Projects: groups of sandboxes in an org, with defaults for new ones.
import { z } from 'zod';
import { exampleProject } from '../route/examples.ts';
import { IDLE_MINUTES, METADATA_LIMITS, NAME_CHARACTERS, REPO_CREDENTIAL_CHARACTERS } from '../route/limits.ts';
import { profile } from '../sandboxes/machine-sizes.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { egress, egressPolicy } from '../sandboxes/egress-policy.ts';
import { branchName, labels, metadata, persistencePolicy, repository } from '../sandboxes/fields.ts';
import { CONTROL, idText, text, textWithout, timestamp } from '../route/text.ts';

export const DEFAULT_USE_CASE = 'internal';
export const EXTERNAL_USE_CASE = 'external';

const useCase = text(1, 64)
  .refine(
    (value) => value === EXTERNAL_USE_CASE || value.trim().toLowerCase() !== EXTERNAL_USE_CASE,
    `must be spelled "${EXTERNAL_USE_CASE}", in lower case and without white space`,
  )
  .describe(
    "Free text. `external`: the sandboxes serve end users of the operator's product; only such projects can " +
      'have ephemeral sandboxes. Another spelling of `external` is rejected.',
  );

const idleMinutesText = `Minutes until idle \`sleep_resume\` sandboxes sleep; 0: never; null: ${IDLE_MINUTES.default}.`;
const egressText = 'Egress policy of new sandboxes without `egress`; null: open. Running sandboxes keep theirs.';
const wakeOnUseText =
  'Whether a command, file call, preview, connection (terminal, tunnel), new agent session or message to a stopped ' +
  'sandbox wakes it.';
const agentApprovals = z
  .enum(['ask', 'never'])
  .meta({ id: 'AgentApprovals' })
  .describe(
    'Whether agents ask for approval before commands and changes. `never`: they carry out everything; the sandbox is ' +
      'the boundary; setting it also requires the permission `agent_approvals.disable`. Takes effect when a session ' +
      'starts or recovers; `ask` reaches running sessions within 2 s.',
  );

const project = z
  .strictObject({
    id: idText,
    orgId: idText,
    name: z.string(),
    useCase: z.string().describe("`external`: the sandboxes serve end users of the operator's product."),
    defaultRepository: z.string().nullable(),
    defaultBranch: z.string().nullable(),
    defaultProfile: profile.nullable(),
    defaultPersistencePolicy: persistencePolicy.nullable(),
    defaultIdleMinutes: z.int().nonnegative().nullable().describe(idleMinutesText),
    defaultEgress: egressPolicy.nullable().describe(egressText),
    wakeOnUse: z.boolean().describe(wakeOnUseText),
    agentApprovals,
    sandboxMachineHourLimit: z
      .number()
      .nonnegative()
      .nullable()
      .describe('Cap on machine hours per billing period; null: no project cap.'),
    metadata: labels,
    hasRepoCredentials: z.boolean().describe('Whether repository credentials are stored; they are never returned.'),
    createdAt: timestamp,
    updatedAt: timestamp,
    deletedAt: timestamp.nullable(),
  })
  .meta({ id: 'Project', description: 'A group of sandboxes in an org, with defaults for new ones.' });
export type Project = z.infer<typeof project>;

/**
 * Credentials of a git host over HTTPS: a token, and a user name if the host requires one; limited
 * to the characters of Basic authentication (RFC 7617). Encrypted at rest, never returned, never
 * logged. Error messages never show a value below a `writeOnly` schema.
 */
export const repoCredentials = z
  .strictObject({
    username: textWithout(
      `:${CONTROL}`,
      1,
      REPO_CREDENTIAL_CHARACTERS,
      'must not contain colons, control characters or lone surrogates',
    ).optional(),
    token: textWithout(
      CONTROL,
      1,
      REPO_CREDENTIAL_CHARACTERS,
      'must not contain control characters or lone surrogates',
    ),
  })
  .meta({
    id: 'RepoCredentials',
    writeOnly: true,
    description: 'A token, and a user name if the git host requires one. Encrypted at rest, never returned.',
  });
export type RepoCredentials = z.infer<typeof repoCredentials>;

const settable = {
  useCase: useCase.optional(),
  defaultProfile: profile.nullable().optional(),
  defaultPersistencePolicy: persistencePolicy.nullable().optional(),
  defaultRepository: repository.nullable().optional(),
  defaultBranch: branchName.nullable().optional(),
  defaultIdleMinutes: z
    .int()
    .min(IDLE_MINUTES.min)
    .max(IDLE_MINUTES.max)
    .nullable()
    .optional()
    .describe(idleMinutesText),
  defaultEgress: egress.nullable().optional().describe(egressText),
  wakeOnUse: z.boolean().optional().describe(wakeOnUseText),
  agentApprovals: agentApprovals.optional(),
  metadata: metadata
    .optional()
    .describe(
      `Labels; values are strings, numbers or booleans; at most ${METADATA_LIMITS.keys} keys. Replaces all ` +
        'previous labels.',
    ),
  repoCredentials: repoCredentials
    .nullable()
    .optional()
    .describe('Encrypted at rest, never returned; null deletes them.'),
  sandboxMachineHourLimit: z
    .number()
    .nullable()
    .refine(
      (value) => value === null,
      'must be null or absent: set it with PATCH /v1/orgs/{orgId}/projects/{projectId}/usage-guardrails',
    )
    .optional()
    .meta({
      type: 'null',
      description: 'Not settable here: org admins set it with the usage-guardrails operation. null has no effect.',
    }),
};

/** The spec has no complete table of these fields, so unknown fields are ignored. */
const createProjectBody = z.object({
  name: text(1, NAME_CHARACTERS).optional().describe('Generated by the server when absent.'),
  ...settable,
});
export type CreateProjectBody = z.infer<typeof createProjectBody>;

/** Absent fields keep their value; `metadata` is replaced. Unknown fields are ignored. */
const updateProjectBody = z.object({ name: text(1, NAME_CHARACTERS).optional(), ...settable });
export type UpdateProjectBody = z.infer<typeof updateProjectBody>;

const orgParams = z.object({ orgId: idText });
const projectParams = z.object({ orgId: idText, projectId: idText });

export const listProjects = defineRoute({
  name: 'listProjects',
  summary: "Lists the org's projects, newest first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/projects',
  auth: ['session', 'api_key'],
  permission: 'project.read',
  request: { params: orgParams, query: pageQuery },
  response: { status: 200, body: z.strictObject({ projects: z.array(project), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
  example: { query: { limit: 20 }, answer: { projects: [exampleProject], nextCursor: null, hasMore: false } },
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
  errors: ['project_limit'],
  activity: 'project_created',
  published: true,
  example: {
    body: {
      name: 'storefront',
      useCase: 'external',
      defaultProfile: 'agent-standard',
      defaultIdleMinutes: 15,
      wakeOnUse: true,
    },
    answer: { project: exampleProject },
  },
});

export const getProject = defineRoute({
  name: 'getProject',
  summary: 'Returns a project',
  method: 'GET',
  path: '/v1/orgs/{orgId}/projects/{projectId}',
  auth: ['session', 'api_key'],
  permission: 'project.read',
  request: { params: projectParams },
  response: { status: 200, body: z.strictObject({ project }) },
  errors: [],
  activity: null,
  published: true,
  example: { answer: { project: exampleProject } },
});

export const updateProject = defineRoute({
  name: 'updateProject',
  summary: 'Updates a project; absent fields keep their value',
  method: 'PATCH',
  path: '/v1/orgs/{orgId}/projects/{projectId}',
  auth: ['session', 'api_key'],
  permission: 'project.update',
  request: { params: projectParams, body: updateProjectBody },
  response: { status: 200, body: z.strictObject({ project }) },
  errors: [],
  activity: 'project_updated',
  published: true,
  example: {
    body: { defaultIdleMinutes: 60, wakeOnUse: false },
    answer: { project: { ...exampleProject, defaultIdleMinutes: 60, wakeOnUse: false } },
  },
});

export const deleteProject = defineRoute({
  name: 'deleteProject',
  summary: 'Deletes a project without sandboxes; its usage is kept',
  method: 'DELETE',
  path: '/v1/orgs/{orgId}/projects/{projectId}',
  auth: ['session'],
  permission: 'project.delete',
  request: { params: projectParams },
  response: { status: 200, body: z.strictObject({ project }) },
  errors: ['project_has_sandboxes'],
  activity: 'project_deleted',
  published: false,
});
