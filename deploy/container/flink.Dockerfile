# Flink, and what Beam has in Java: the job server, the expansion service that writes the step that reads Kafka, and the
# worker that runs it. Jars are the pinned ones of this folder.
# Build it from the root of the repository: docker build -f deploy/container/flink.Dockerfile -t uldp-flink .
FROM maven:3.9-eclipse-temurin-17 AS jars
WORKDIR /build
COPY deploy/container/pom.xml deploy/container/jars.sha256 ./
RUN mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars \
    && cd jars && sha256sum --check --strict --quiet ../jars.sha256
# jobs take all jars of the job server to Flink, where the broker's Scala 2.13 meets Flink's own
RUN rm jars/*_2.13-*.jar jars/scala-library-*.jar jars/scala-reflect-*.jar

FROM apache/beam_java17_sdk:2.70.0 AS worker

FROM flink:1.19.0-java17
COPY --from=jars /build/jars /opt/beam/jars
COPY --from=worker /opt/apache/beam /opt/apache/beam
COPY deploy/container/option-heap.json /opt/apache/beam/options/
RUN mkdir /uldp && chown flink /uldp
# packages of Java 17 that Flink 1.19 serialises with reflection; every Java process of this image reads this
ENV JAVA_TOOL_OPTIONS="--add-opens=java.base/java.lang=ALL-UNNAMED \
--add-opens=java.base/java.lang.reflect=ALL-UNNAMED \
--add-opens=java.base/java.io=ALL-UNNAMED \
--add-opens=java.base/java.net=ALL-UNNAMED \
--add-opens=java.base/java.text=ALL-UNNAMED \
--add-opens=java.base/java.time=ALL-UNNAMED \
--add-opens=java.base/java.util=ALL-UNNAMED \
--add-opens=java.base/java.util.concurrent=ALL-UNNAMED \
--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED"
USER 9999
