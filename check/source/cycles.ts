// Cycles in a directed graph: its strongly connected components of more than one node (Tarjan).

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** The groups of nodes that reach each other, each sorted. */
export function findCycles(graph: Graph): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const open = new Set<string>();
  const cycles: string[][] = [];
  const visit = (node: string): number => {
    const own = index.size;
    index.set(node, own);
    low.set(node, own);
    stack.push(node);
    open.add(node);
    for (const next of graph.get(node) ?? []) {
      const reached = index.has(next) ? index.get(next) : visit(next);
      const lowest = open.has(next) ? Math.min(reached ?? own, low.get(next) ?? own) : own;
      low.set(node, Math.min(low.get(node) ?? own, lowest));
    }
    if (low.get(node) === own) {
      const group = stack.splice(stack.indexOf(node));
      for (const member of group) open.delete(member);
      if (group.length > 1) cycles.push(group.sort());
    }
    return own;
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return cycles;
}
