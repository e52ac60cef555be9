// The tools of the MCP endpoint, as data. A tool is a route: its schemas, checks, errors and
// response are the route's, and its arguments are the route's parameters in snake case (spec: Agent
// sessions rule 14). docs/mcp.md is printed from this table.
import { AGENT_TOOLS } from './agent-tools.ts';
import { PROCESS_TOOLS } from './process-tools.ts';
import { SANDBOX_TOOLS } from './sandbox-tools.ts';
import type { McpTool } from './tool.ts';

export const MCP_TOOLS: readonly McpTool[] = [...AGENT_TOOLS, ...SANDBOX_TOOLS, ...PROCESS_TOOLS];
