// Projects of an org.
import type { Calls } from './calls/calls.ts';
import type { CreateProjectData, Project, UpdateProjectData } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

export type { Project };
export type ProjectSpec = NonNullable<CreateProjectData['body']>;
export type ProjectChanges = NonNullable<UpdateProjectData['body']>;

/** Options of calls with an org. */
export interface OrgCallOptions extends CallOptions {
  /** Default: the client's org. */
  orgId?: string;
}

export class Projects {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Lists projects, newest first. */
  async list({ orgId, ...options }: OrgCallOptions = {}): Promise<Project[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listProjects({ path: { orgId: await this.#calls.orgId(orgId) }, ...set(options) })).projects;
  }

  async get(projectId: string, { orgId, ...options }: OrgCallOptions = {}): Promise<Project> {
    const { raw, with: set } = this.#calls;
    return (await raw.getProject({ path: { orgId: await this.#calls.orgId(orgId), projectId }, ...set(options) }))
      .project;
  }

  async create(spec: ProjectSpec = {}, { orgId, ...options }: OrgCallOptions = {}): Promise<Project> {
    const { raw, with: set } = this.#calls;
    const whenLost = 'The project may have been made all the same: list the projects before you create again.';
    const call = { path: { orgId: await this.#calls.orgId(orgId) }, body: spec, ...set({ ...options, whenLost }) };
    return (await raw.createProject(call)).project;
  }

  /** Changes the given fields. */
  async update(
    projectId: string,
    changes: ProjectChanges,
    { orgId, ...options }: OrgCallOptions = {},
  ): Promise<Project> {
    const { raw, with: set } = this.#calls;
    return (
      await raw.updateProject({
        path: { orgId: await this.#calls.orgId(orgId), projectId },
        body: changes,
        ...set(options),
      })
    ).project;
  }

  /** Deletes a project without sandboxes. Requires a session token. */
  async delete(projectId: string, { orgId, ...options }: OrgCallOptions = {}): Promise<Project> {
    const { raw, with: set } = this.#calls;
    return (await raw.deleteProject({ path: { orgId: await this.#calls.orgId(orgId), projectId }, ...set(options) }))
      .project;
  }
}
