/** Makes the Prisma client and the links of the embedded PostgreSQL when they are missing; see the script. */
export function ensureGenerated(root: string): void;
