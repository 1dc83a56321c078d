package io.lucce.agents;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate, H2 and a logger at work: what the OpenTelemetry agent puts code into. */
public final class Persist {
    private Persist() {}

    @Entity(name = "Owner")
    public static class Owner {
        @Id
        @GeneratedValue
        public Long id;

        public String name;

        @OneToMany(cascade = CascadeType.ALL, fetch = FetchType.LAZY)
        public List<Pet> pets = new ArrayList<>();

        public String getName() {
            return name;
        }
    }

    @Entity(name = "Pet")
    public static class Pet {
        @Id
        @GeneratedValue
        public Long id;

        public String name;

        @ManyToOne(fetch = FetchType.LAZY)
        public Owner owner;

        public String getName() {
            return name;
        }
    }

    public static void main(String[] none) {
        Configuration configuration = new Configuration()
                .addAnnotatedClass(Owner.class)
                .addAnnotatedClass(Pet.class)
                .setProperty("hibernate.connection.url", "jdbc:h2:mem:pets")
                .setProperty("hibernate.hbm2ddl.auto", "create");
        Logger logger = Logger.getLogger("io.lucce.agents");
        logger.setUseParentHandlers(false);
        try (SessionFactory factory = configuration.buildSessionFactory()) {
            for (int i = 0; i < 3; i++) {
                String name = "owner " + i;
                factory.inTransaction(session -> insert(session, name));
                logger.log(Level.INFO, "inserted {0}", name);
            }
            factory.inTransaction(Persist::read);
        }
        System.out.println("OK");
    }

    private static void insert(Session session, String name) {
        Owner owner = new Owner();
        owner.name = name;
        Pet pet = new Pet();
        pet.name = "pet of " + name;
        pet.owner = owner;
        owner.pets.add(pet);
        session.persist(owner);
    }

    private static void read(Session session) {
        for (Pet pet : session.createQuery("from Pet", Pet.class).list()) {
            if (!pet.getName().equals("pet of " + pet.owner.getName())) {
                throw new IllegalStateException(pet.name);
            }
        }
    }
}
