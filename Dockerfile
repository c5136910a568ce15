# syntax=docker/dockerfile:1
# Build: generate the database client once, with all packages; run: production packages only, as an ordinary user.
FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY prisma ./prisma
COPY prisma.config.ts ./
COPY scripts/ensure-generated.mjs ./scripts/
RUN node scripts/ensure-generated.mjs

FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY package.json package-lock.json ./
# Without optional packages: they would bring the embedded PostgreSQL of demo and tests, and the Prisma command line. The one that is
# needed, the compiler that loads the sources, comes from the stage above; its install script would fetch it past the lock file. What
# only other databases need goes, and so do maps.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
  && find node_modules/@prisma/client/runtime -name "query_compiler*" ! -name "*.postgresql.*" -delete \
  && find node_modules -name "*.map" -delete \
  && npm cache clean --force
COPY --from=build /app/node_modules/@esbuild ./node_modules/@esbuild
COPY bin ./bin
COPY scripts/ensure-generated.mjs ./scripts/
COPY prisma ./prisma
COPY policies ./policies
COPY policy.yaml tsconfig.json ./
COPY src ./src
COPY --from=build /app/src/db/generated ./src/db/generated
# The build of the sources, made once here: the running container writes nothing.
RUN node bin/build.mjs && chmod -R a+rX .countersign
USER node
EXPOSE 3000
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=4 \
  CMD node -e "fetch('http://127.0.0.1:'+(process.env.PORT||3000)+'/healthz').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"
ENTRYPOINT ["node", "bin/countersign.js"]
CMD ["start"]
